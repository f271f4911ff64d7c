// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
)

// Config is what a Controller needs beside controller.Shared. All fields are required unless their comment says otherwise.
type Config struct {
	// Leasing returns clients of the Leases that branches are written under.
	Leasing coordinationv1.LeasesGetter
	// Identity identifies this server in commits. The controller sets its ClusterUID.
	Identity Identity
	// Limits bound batches and branches.
	Limits Limits
	// Leases are the place and the times of the Leases that branches are written under.
	Leases Leases
	// Policy resolves rules that do not name their types.
	Policy watch.Policy
	// AllowInsecure (--git-allow-insecure) permits http and file URLs.
	AllowInsecure bool
	// Facts are the facts about the users who made changes; nil disables attribution by facts.
	Facts attribution.Facts
	// Hash returns the HMAC of canonical content that facts contain; nil if they contain none.
	Hash func([]byte) string
	// AuditExpected is set if API servers are configured to send audit events.
	AuditExpected bool
	// AttributionMaxWait (--attribution-max-wait, 2 s) bounds how long a change waits for facts.
	AttributionMaxWait time.Duration
	// History records Changes; nil disables it.
	History History
	// Files remembers the contents of files, so that Changes can say what differs; nil disables that.
	Files *blobcache.Cache
	// Deposits are the files that other parts of the server write to destinations; nil disables them.
	Deposits *Deposits
	// Network connects to repositories.
	Network *proxy.Network
	// Azure is the server's identity for repositories of the provider azure; nil if it has none.
	Azure *AzureIdentity
}

// Limits bound batches and concurrency.
type Limits struct {
	// MaxFiles (--git-batch-max-files, 200) and MaxBytes (--git-batch-max-bytes-mib, 1 MiB)
	// bound one batch. A full batch is pushed at once.
	MaxFiles int
	MaxBytes int
	// MaxWait (--git-batch-max-wait-sec, 20 s) bounds how long a change waits to be batched with others.
	MaxWait time.Duration
	// Workers (--workers-max-global, 24) bounds how many branches are written at once,
	// WorkersPerRepository (--workers-max-per-repo, 5) how many of one repository URL.
	Workers              int
	WorkersPerRepository int
	// RemoteMemory (--git-max-memory-mib, 256 MiB) is how many bytes one operation on a remote may hold.
	RemoteMemory int64
}
