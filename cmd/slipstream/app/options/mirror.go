// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// MirrorOptions configure batches, branches and the selection of types.
type MirrorOptions struct {
	// BatchMaxFiles, BatchMaxBytesMiB and BatchMaxWaitSeconds limit a batch of changes for one push.
	BatchMaxFiles       int
	BatchMaxBytesMiB    int
	BatchMaxWaitSeconds int
	// GitMaxMemoryMiB limits the memory of one operation on a remote.
	GitMaxMemoryMiB int
	// WorkersMaxGlobal limits the branches that are written concurrently, WorkersMaxPerRepo those of one repository.
	WorkersMaxGlobal  int
	WorkersMaxPerRepo int
	// LeaseSeconds is the duration of a branch's Lease, RenewSeconds the interval of its renewal.
	LeaseSeconds int
	RenewSeconds int
	// LeaseNamespace is the namespace of the Leases of branches, the server's own if empty.
	LeaseNamespace string
	// DiscoveryRefresh is the interval of discovery without a trigger.
	DiscoveryRefresh time.Duration
	// DiscoveryExclude are types, as resource.group, that rules must name to select them.
	DiscoveryExclude []string
	// WatchAll makes rules without resources select every type instead of the preset.
	WatchAll bool
}

func newMirrorOptions() *MirrorOptions {
	return &MirrorOptions{
		BatchMaxFiles: 200, BatchMaxBytesMiB: 1, BatchMaxWaitSeconds: 20, GitMaxMemoryMiB: gitrepo.DefaultMaxMemory >> 20,
		WorkersMaxGlobal: 24, WorkersMaxPerRepo: 5, LeaseSeconds: 24, RenewSeconds: 8, DiscoveryRefresh: 5 * time.Minute,
	}
}

func (o *MirrorOptions) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.BatchMaxFiles, "git-batch-max-files", o.BatchMaxFiles,
		"Maximum number of changes in one push. A batch of this size is pushed without waiting.")
	flags.IntVar(&o.BatchMaxBytesMiB, "git-batch-max-bytes-mib", o.BatchMaxBytesMiB,
		"Size of a batch, in MiB, that is pushed without waiting.")
	flags.IntVar(&o.BatchMaxWaitSeconds, "git-batch-max-wait-sec", o.BatchMaxWaitSeconds,
		"Maximum time, in seconds, that a change waits for others while changes keep coming. After a quiet period changes are pushed at once.")
	flags.IntVar(&o.GitMaxMemoryMiB, "git-max-memory-mib", o.GitMaxMemoryMiB,
		"Maximum memory, in MiB, for data from the Git server while one repository is read or written. "+
			"A branch takes about 1 MiB for every 4000 files. At most two repositories that need more than 8 MiB are read at the same time.")
	flags.IntVar(&o.WorkersMaxGlobal, "workers-max-global", o.WorkersMaxGlobal, "Maximum number of branches that are written at once.")
	flags.IntVar(&o.WorkersMaxPerRepo, "workers-max-per-repo", o.WorkersMaxPerRepo,
		"Maximum number of branches of one repository that are written at once.")
	flags.IntVar(&o.LeaseSeconds, "leases-lease-sec", o.LeaseSeconds,
		"Time, in seconds, for which the Lease of a branch excludes other servers after its last renewal.")
	flags.IntVar(&o.RenewSeconds, "leases-renew-sec", o.RenewSeconds,
		"Age, in seconds, at which the Lease of a branch that is being written is renewed. The Leases of idle branches are not renewed.")
	flags.StringVar(&o.LeaseNamespace, "leases-namespace", o.LeaseNamespace,
		"Namespace of the Leases of branches. Installations in one cluster that write the same branches must use the same namespace. "+
			"Defaults to the server's own.")
	flags.DurationVar(&o.DiscoveryRefresh, "discovery-refresh", o.DiscoveryRefresh,
		"Interval of the regular discovery of resource types. Changes of types are detected at once.")
	flags.StringSliceVar(&o.DiscoveryExclude, "discovery-exclude", o.DiscoveryExclude,
		"Resource types that are excluded from * and from the preset, as resource or resource.group. "+
			"A rule that names one still selects it. Repeat or separate with commas.")
	flags.BoolVar(&o.WatchAll, "watch-all", o.WatchAll,
		"Let rules without resources select every type that can be watched, instead of the preset.")
}

func (o *MirrorOptions) validate() []error {
	var errs []error
	for name, value := range map[string]int{
		"git-batch-max-files": o.BatchMaxFiles, "git-batch-max-bytes-mib": o.BatchMaxBytesMiB,
		"git-batch-max-wait-sec": o.BatchMaxWaitSeconds, "workers-max-global": o.WorkersMaxGlobal, "workers-max-per-repo": o.WorkersMaxPerRepo,
		"leases-renew-sec": o.RenewSeconds,
	} {
		if value < 1 {
			errs = append(errs, fmt.Errorf("--%s=%d must be at least 1", name, value))
		}
	}
	// A batch must fit into one push, so that it is accepted or refused as a whole.
	if o.BatchMaxFiles > maxBatchFiles {
		errs = append(errs, fmt.Errorf("--git-batch-max-files=%d must be at most %d", o.BatchMaxFiles, maxBatchFiles))
	}
	if o.BatchMaxBytesMiB > maxBatchMiB {
		errs = append(errs, fmt.Errorf("--git-batch-max-bytes-mib=%d must be at most %d", o.BatchMaxBytesMiB, maxBatchMiB))
	}
	if o.GitMaxMemoryMiB < minGitMemoryMiB {
		errs = append(errs, fmt.Errorf("--git-max-memory-mib=%d must be at least %d", o.GitMaxMemoryMiB, minGitMemoryMiB))
	}
	if o.LeaseSeconds < 2*o.RenewSeconds {
		errs = append(errs, fmt.Errorf("--leases-lease-sec=%d must be at least twice --leases-renew-sec=%d", o.LeaseSeconds, o.RenewSeconds))
	}
	if o.DiscoveryRefresh < time.Second {
		errs = append(errs, fmt.Errorf("--discovery-refresh=%v must be at least 1s", o.DiscoveryRefresh))
	}
	return errs
}

const (
	// Upper bounds of a batch.
	maxBatchFiles = 1000
	maxBatchMiB   = 4
	// minGitMemoryMiB is the minimum of the limit for the memory of a remote: searching all files of a branch takes half
	// of it.
	minGitMemoryMiB = 32
)

// Limits returns the limits of batches and branches.
func (o *MirrorOptions) Limits() mirror.Limits {
	return mirror.Limits{
		MaxFiles: o.BatchMaxFiles, MaxBytes: o.BatchMaxBytesMiB << 20,
		MaxWait: time.Duration(o.BatchMaxWaitSeconds) * time.Second, Workers: o.WorkersMaxGlobal,
		WorkersPerRepository: o.WorkersMaxPerRepo, RemoteMemory: int64(o.GitMaxMemoryMiB) << 20,
	}
}

// Leases returns the configuration of the branches' Leases for a server in a namespace.
func (o *MirrorOptions) Leases(own string) mirror.Leases {
	return mirror.Leases{
		Namespace: cmp.Or(o.LeaseNamespace, own),
		Duration:  time.Duration(o.LeaseSeconds) * time.Second, Renew: time.Duration(o.RenewSeconds) * time.Second,
	}
}

// Policy returns which types a rule without resources selects.
func (o *MirrorOptions) Policy() watch.Policy {
	policy := watch.DefaultPolicy()
	if o.WatchAll {
		policy.Default = nil
	}
	for _, name := range o.DiscoveryExclude {
		policy.Exclude = append(policy.Exclude, schema.ParseGroupResource(name))
	}
	return policy
}
