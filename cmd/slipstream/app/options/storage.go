// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// Storage backends.
const (
	// BackendBolt stores everything in files of the data directory, for one replica.
	BackendBolt = "bbolt"
	// BackendEtcd3 stores everything in etcd, for several replicas.
	BackendEtcd3 = "etcd3"
)

// Upstream's flags that have another meaning here.
const (
	compactionFlag = "etcd-compaction-interval"
	prefixFlag     = "etcd-prefix"
)

const (
	// leastCompactionInterval is the minimum that gives clients time to read a list page by page.
	leastCompactionInterval = time.Second
	// workCompactionInterval is longer than any reader of the working state lags behind. Its history is many times its
	// size, since every mirrored change is written and removed again.
	workCompactionInterval = 15 * time.Second
	// cacheFolder is the folder of cached contents in the data directory.
	cacheFolder = "files"
	// archiveFolder is the folder of the archive in the data directory.
	archiveFolder = "archive"
	// defaultDataDir is where a persistent volume is mounted.
	defaultDataDir = "/var/lib/slipstream"
)

// StorageOptions configure where objects and working state are stored.
type StorageOptions struct {
	// Backend is BackendBolt or BackendEtcd3.
	Backend string
	// DataDir contains the files of BackendBolt. It is created with mode 0700.
	DataDir string
	// ArchiveDir is where records are archived. With BackendBolt it defaults to a folder of DataDir.
	ArchiveDir string
	// CacheMiB bounds the disk space of cached contents of files in Git, in MiB.
	CacheMiB int
	// Etcd configures the connection of BackendEtcd3, and encryption and caching of both backends.
	Etcd *genericoptions.EtcdOptions

	// prefix is the flag of that name.
	prefix *pflag.Flag
}

func newStorageOptions(etcd *genericoptions.EtcdOptions) *StorageOptions {
	return &StorageOptions{
		Backend: BackendBolt, DataDir: defaultDataDir, CacheMiB: blobcache.DefaultMaxBytes >> 20, Etcd: etcd,
	}
}

// addFlags adds upstream's flags, except for the one that only offers etcd.
func (o *StorageOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Backend, "storage-backend", o.Backend,
		"Where objects are stored: bbolt, in files in --data-dir, for one replica; or etcd3, in --etcd-servers, for several.")
	flags.StringVar(&o.DataDir, "data-dir", o.DataDir,
		"Folder of the files of --storage-backend=bbolt, and of cached contents of files in Git. Created if it is missing.")
	flags.IntVar(&o.CacheMiB, "git-cache-mib", o.CacheMiB,
		"Disk space in MiB for cached contents of files in Git, in the folder "+cacheFolder+" of --data-dir. Changes name the "+
			"fields that differ from them, and past contents need not be read from remotes.")
	flags.StringVar(&o.ArchiveDir, "archive-dir", o.ArchiveDir,
		"Folder of the files in which records of syncs are archived before they are deleted, if the SyncPolicy archives to files. "+
			"Created if it is missing, in an existing folder. Defaults to the folder "+archiveFolder+" in --data-dir; "+
			"with --storage-backend=etcd3 there is no default.")
	upstream := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	o.Etcd.AddFlags(upstream)
	upstream.Lookup("encryption-provider-config").Usage = "File with the Kubernetes EncryptionConfiguration with which " +
		"all stored data is encrypted. Without it the server generates one with a key of its own: " +
		"encryption.yaml in --data-dir, or with etcd3 the Secret slipstream-encryption in --namespace."
	o.prefix = upstream.Lookup(prefixFlag)
	o.prefix.Usage = "Prefix of all keys in the store. Files keep their prefix as long as they hold data."
	upstream.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == compactionFlag {
			flag.Usage = "Interval of compaction, and minimum age of history from which a watch can resume and a paged list can continue. " +
				"With etcd3, 0 leaves compaction to etcd."
		}
		if flag.Name != "storage-backend" {
			flags.AddFlag(flag)
		}
	})
}

// PrefixGiven reports whether the user has set the prefix of the keys.
func (o *StorageOptions) PrefixGiven() bool { return o.prefix != nil && o.prefix.Changed }

func (o *StorageOptions) validate() []error {
	errs := o.validateBackend()
	if o.CacheMiB < 1 {
		errs = append(errs, fmt.Errorf("--git-cache-mib=%d must be at least 1", o.CacheMiB))
	}
	if o.ArchiveDir != "" && !filepath.IsAbs(o.ArchiveDir) {
		errs = append(errs, fmt.Errorf("--archive-dir=%q must be an absolute path", o.ArchiveDir))
	}
	return errs
}

func (o *StorageOptions) validateBackend() []error {
	switch o.Backend {
	case BackendBolt:
		return o.validateBolt()
	case BackendEtcd3:
		return o.Etcd.Validate()
	}
	return []error{o.UnknownBackend()}
}

// UnknownBackend returns the error for a backend that is neither BackendBolt nor BackendEtcd3.
func (o *StorageOptions) UnknownBackend() error {
	return fmt.Errorf("--storage-backend=%q must be bbolt or etcd3", o.Backend)
}

// ArchiveFolder returns where records are archived, empty if there is no place for them.
func (o *StorageOptions) ArchiveFolder() string {
	if o.ArchiveDir == "" && o.Backend == BackendBolt {
		return filepath.Join(o.DataDir, archiveFolder)
	}
	return o.ArchiveDir
}

// CacheFolder returns where contents of files in Git are cached.
func (o *StorageOptions) CacheFolder() string { return filepath.Join(o.DataDir, cacheFolder) }

// rarelyWatched are the resources that hardly any client but this server's controllers watches, or that have few objects.
var rarelyWatched = []string{
	"appcatalogs", "catalogworkloads", "clusterwatchrules", "environmentdependencies", "gitdestinations", "gitdestinationstatuses",
	"gitrepoconfigs", "notificationsinks", "syncpipelines", "syncpolicies", "watchrules",
}

// complete makes the watch cache keep events for as long as the store keeps its history. Changes have no watch cache: there may be many,
// and lists of them are read from the store, a page at a time. With files, which are in the same process, what is rarely watched has none
// either, unless --watch-cache-sizes says otherwise: each cache wakes up about once a second.
func (o *StorageOptions) complete() {
	if o.Backend == BackendBolt {
		var sizes []string
		for _, resource := range rarelyWatched {
			sizes = append(sizes, v1alpha1.Resource(resource).String()+"#0")
		}
		o.Etcd.WatchCacheSizes = append(sizes, o.Etcd.WatchCacheSizes...)
	}
	o.Etcd.WatchCacheSizes = append(o.Etcd.WatchCacheSizes, history.Resource.String()+"#0")
	config := &o.Etcd.StorageConfig
	config.EventsHistoryWindow = max(config.EventsHistoryWindow, config.CompactionInterval)
}

// Engine returns the options of the object store of BackendBolt.
func (o *StorageOptions) Engine() bolt.Options {
	return bolt.Options{CompactionInterval: o.Etcd.StorageConfig.CompactionInterval}
}

// WorkEngine returns the options of the work store of BackendBolt.
func (o *StorageOptions) WorkEngine() bolt.Options {
	return bolt.Options{CompactionInterval: min(workCompactionInterval, o.Etcd.StorageConfig.CompactionInterval)}
}

func (o *StorageOptions) validateBolt() []error {
	errs := bolt.ValidateOptions(o.Etcd)
	if interval := o.Etcd.StorageConfig.CompactionInterval; interval < leastCompactionInterval {
		errs = append(errs, fmt.Errorf("--etcd-compaction-interval=%v must be at least %v with --storage-backend=bbolt: nothing else compacts "+
			"its files",
			interval, leastCompactionInterval))
	}
	if !filepath.IsAbs(o.DataDir) {
		errs = append(errs, fmt.Errorf("--data-dir=%q must be an absolute path", o.DataDir))
	}
	if len(o.Etcd.StorageConfig.Transport.ServerList) > 0 {
		errs = append(errs, errors.New("--etcd-servers has no meaning with --storage-backend=bbolt; add --storage-backend=etcd3 or remove it"))
	}
	return errs
}
