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

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// Storage backends.
const (
	// BackendBolt keeps everything in files of the data directory, for one replica.
	BackendBolt = "bbolt"
	// BackendEtcd3 keeps everything in etcd, for several replicas.
	BackendEtcd3 = "etcd3"
)

// Flags of upstream's with another meaning here.
const (
	compactionFlag = "etcd-compaction-interval"
	prefixFlag     = "etcd-prefix"
)

const (
	// leastCompactionInterval leaves a client that reads page by page time to do so.
	leastCompactionInterval = time.Second
	// workCompactionInterval is more than anybody who follows the working state falls behind. Its history is many times as
	// large as what it holds, since every change that is mirrored is written to it and removed from it again.
	workCompactionInterval = 15 * time.Second
	// archiveFolder is the folder of the archive in the data directory.
	archiveFolder = "archive"
	// defaultDataDir is where a persistent volume is mounted.
	defaultDataDir = "/var/lib/slipstream"
)

// StorageOptions say where objects and working state are kept.
type StorageOptions struct {
	// Backend is BackendBolt or BackendEtcd3.
	Backend string
	// DataDir holds the files of BackendBolt. It is created with mode 0700.
	DataDir string
	// ArchiveDir is where records are archived; with BackendBolt a folder of DataDir if it is empty.
	ArchiveDir string
	// Etcd is upstream's, for the connection of BackendEtcd3 and for encryption and caching of both.
	Etcd *genericoptions.EtcdOptions

	// prefix is the flag of that name.
	prefix *pflag.Flag
}

func newStorageOptions(etcd *genericoptions.EtcdOptions) *StorageOptions {
	return &StorageOptions{Backend: BackendBolt, DataDir: defaultDataDir, Etcd: etcd}
}

// addFlags takes upstream's flags over, except the one that would offer etcd alone.
func (o *StorageOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Backend, "storage-backend", o.Backend,
		"Where objects are kept: bbolt, in files of --data-dir, for one replica; or etcd3, in --etcd-servers, for several.")
	flags.StringVar(&o.DataDir, "data-dir", o.DataDir, "Folder of the files of --storage-backend=bbolt. Created when it is missing.")
	flags.StringVar(&o.ArchiveDir, "archive-dir", o.ArchiveDir,
		"Folder of the files that records of syncs are archived in before they go, when the SyncPolicy asks for files. Created when it is missing, "+
			"in a folder that is there. Defaults to the folder "+archiveFolder+" in --data-dir; with --storage-backend=etcd3 there is none by default.")
	upstream := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	o.Etcd.AddFlags(upstream)
	upstream.Lookup("encryption-provider-config").Usage = "File with the Kubernetes EncryptionConfiguration under which everything is sealed that is stored. " +
		"Without one the server makes one with a key of its own: encryption.yaml in --data-dir, or with etcd3 the Secret slipstream-encryption in --namespace."
	o.prefix = upstream.Lookup(prefixFlag)
	o.prefix.Usage = "What all keys in the store begin with. Files keep theirs as long as they hold something. " +
		"An etcd in which there is nothing below the default is looked through for the one of before, /registry."
	upstream.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == compactionFlag {
			flag.Usage = "How often history is compacted: it goes back at least that far, for watches to resume and for lists to go on. With etcd3, 0 leaves compaction to etcd."
		}
		if flag.Name != "storage-backend" {
			flags.AddFlag(flag)
		}
	})
}

// PrefixGiven reports whether the user has chosen the prefix of the keys.
func (o *StorageOptions) PrefixGiven() bool { return o.prefix != nil && o.prefix.Changed }

func (o *StorageOptions) validate() []error {
	errs := o.validateBackend()
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
	return []error{fmt.Errorf("--storage-backend=%q must be bbolt or etcd3", o.Backend)}
}

// ArchiveFolder is where records are archived; empty: this server has no place for them.
func (o *StorageOptions) ArchiveFolder() string {
	if o.ArchiveDir == "" && o.Backend == BackendBolt {
		return filepath.Join(o.DataDir, archiveFolder)
	}
	return o.ArchiveDir
}

// complete makes the watch cache keep what a client may resume from for as long as the store does.
func (o *StorageOptions) complete() {
	config := &o.Etcd.StorageConfig
	config.EventsHistoryWindow = max(config.EventsHistoryWindow, config.CompactionInterval)
}

// Engine are the settings of the file of objects of BackendBolt.
func (o *StorageOptions) Engine() bolt.Options {
	return bolt.Options{CompactionInterval: o.Etcd.StorageConfig.CompactionInterval}
}

// WorkEngine are the settings of the file of the working state of BackendBolt.
func (o *StorageOptions) WorkEngine() bolt.Options {
	return bolt.Options{CompactionInterval: min(workCompactionInterval, o.Etcd.StorageConfig.CompactionInterval)}
}

func (o *StorageOptions) validateBolt() []error {
	errs := bolt.ValidateOptions(o.Etcd)
	if interval := o.Etcd.StorageConfig.CompactionInterval; interval < leastCompactionInterval {
		errs = append(errs, fmt.Errorf("--etcd-compaction-interval=%v must be at least %v with --storage-backend=bbolt: nothing else compacts its files",
			interval, leastCompactionInterval))
	}
	if !filepath.IsAbs(o.DataDir) {
		errs = append(errs, fmt.Errorf("--data-dir=%q must be an absolute path", o.DataDir))
	}
	if len(o.Etcd.StorageConfig.Transport.ServerList) > 0 {
		errs = append(errs, errors.New("--etcd-servers has no meaning with --storage-backend=bbolt; add --storage-backend=etcd3 or leave it out"))
	}
	return errs
}
