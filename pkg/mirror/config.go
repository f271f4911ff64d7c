// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"net"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// Config is what a Controller needs beside controller.Shared. All fields are required unless their comment says otherwise.
type Config struct {
	// Leasing returns clients of the Leases that branches are written under.
	Leasing coordinationv1.LeasesGetter
	// Identity is what commits say about this server; its ClusterUID is filled in.
	Identity Identity
	// Limits bound batches and branches.
	Limits Limits
	// Leases are the place and the times of the Leases that branches are written under.
	Leases Leases
	// Policy says what rules mean that do not name their types.
	Policy watch.Policy
	// AllowInsecure (--git-allow-insecure) lets http and file URLs in.
	AllowInsecure bool
	// Facts are the reports of who made changes; nil: there are none.
	Facts attribution.Facts
	// Hash is the keyed hash of canonical content that facts have; nil: they have none.
	Hash func([]byte) string
	// AuditExpected says that API servers are set up to report what they audit.
	AuditExpected bool
	// AttributionMaxWait (--attribution-max-wait, 2 s) is the longest that a change waits for facts.
	AttributionMaxWait time.Duration
	// Landings are told which commits hold the objects that somebody cares for; nil: nobody is.
	Landings Landings
	// Deposits are files that others have for destinations; nil: nobody has any.
	Deposits *Deposits
	// Dial opens connections to repositories.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}
