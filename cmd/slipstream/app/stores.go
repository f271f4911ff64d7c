// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdtransport "go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/util/uuid"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/pkg/store/keyspace"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/store/unreadable"
)

// stores are where the server keeps objects and working state.
type stores struct {
	// dir is the data directory of the backend bbolt, which this process has locked. Nil with etcd3.
	dir *datadir.Dir
	// api and work are the files of the backend bbolt. Separate files allow requests and the mirror to write at the same
	// time. Both are nil with etcd3.
	api, work *bolt.Engine
	// etcd is the connection for the working state with etcd3; upstream has its own for objects. Nil with bbolt.
	etcd *clientv3.Client
	// identity distinguishes this process from every other one that may lead the controllers.
	identity string
}

// openStores opens the stores of opts. With bbolt it fails while another process has the files open.
func openStores(ctx context.Context, opts *options.StorageOptions) (*stores, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("determining the host name: %w", err)
	}
	if opts.Backend == options.BackendEtcd3 {
		return connectStores(ctx, opts, host)
	}
	s := &stores{}
	if s.dir, err = datadir.Open(ctx, opts.DataDir); err != nil {
		return nil, err
	}
	if s.api, err = bolt.Open(ctx, s.dir.File(datadir.APIFile), opts.Engine()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.work, err = bolt.Open(ctx, s.dir.File(datadir.WorkFile), opts.WorkEngine()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := s.findPrefix(ctx, opts); err != nil {
		return nil, errors.Join(err, s.close())
	}
	store, err := storeIdentity(ctx, s.api)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	// Only one process can have the file open. So the process that has it open on this host is the same leader as before,
	// and leads at once after a crash, without waiting for its own Lease to expire.
	s.identity = host + "_" + store
	return s, nil
}

// connectStores connects to the etcd of opts.
func connectStores(ctx context.Context, opts *options.StorageOptions, host string) (*stores, error) {
	client, err := newEtcdClient(ctx, opts.Etcd.StorageConfig.Transport)
	if err != nil {
		return nil, err
	}
	s := &stores{etcd: client, identity: host + "_" + string(uuid.NewUUID())}
	if err := checkEtcd(ctx, client, opts.Etcd.StorageConfig.Prefix); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// checkEtcd fails unless etcd serves a read in time: its client would retry forever.
func checkEtcd(ctx context.Context, client *clientv3.Client, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdDialTimeout)
	defer cancel()
	if _, err := client.Get(ctx, prefix, clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("connecting to etcd at %q: %w", client.Endpoints(), err)
	}
	return nil
}

// findPrefix sets the prefix of the keys in opts to the one that the files have.
func (s *stores) findPrefix(ctx context.Context, opts *options.StorageOptions) error {
	prefix, err := s.prefix(ctx, opts)
	if err != nil {
		return err
	}
	if configured := opts.Etcd.StorageConfig.Prefix; prefix != configured {
		klog.FromContext(ctx).Info("Keeping the prefix of the existing keys", "prefix", prefix, "configured", configured)
		opts.Etcd.StorageConfig.Prefix = prefix
	}
	return nil
}

// prefix returns the prefix of the keys: the configured one in etcd, the one that the keys have in files.
func (s *stores) prefix(ctx context.Context, opts *options.StorageOptions) (string, error) {
	configured := opts.Etcd.StorageConfig.Prefix
	if s.etcd != nil {
		return configured, nil
	}
	return keyspace.OfFiles(ctx, v1alpha1.GroupName, s.client(ctx, s.api).KV, s.client(ctx, s.work).KV, configured)
}

// storeIdentity returns the number that a store file got when it was created.
func storeIdentity(ctx context.Context, engine *bolt.Engine) (string, error) {
	answer, err := engine.Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err != nil {
		return "", fmt.Errorf("reading the identity of store %s: %w", engine.Path(), err)
	}
	return fmt.Sprintf("%016x", answer.Header.ClusterId), nil
}

// applyTo makes a server store its objects here. ctx must outlive the server.
func (s *stores) applyTo(ctx context.Context, opts *options.StorageOptions, config *genericapiserver.Config) error {
	if s.api == nil {
		if err := opts.Etcd.ApplyTo(config); err != nil {
			return fmt.Errorf("applying the etcd options: %w", err)
		}
		return nil
	}
	if err := legacyregistry.CustomRegister(bolt.NewCollector(s.api, s.work)); err != nil {
		return fmt.Errorf("registering the metrics of the stores: %w", err)
	}
	return s.applyFilesTo(ctx, opts, config)
}

// applyFilesTo makes a server store its objects in the files, and adds their health checks.
func (s *stores) applyFilesTo(ctx context.Context, opts *options.StorageOptions, config *genericapiserver.Config) error {
	if err := bolt.ApplyTo(ctx, s.api, opts.Etcd, config); err != nil {
		return fmt.Errorf("applying the bbolt store: %w", err)
	}
	config.AddHealthChecks(bolt.HealthCheck("bbolt-work", s.work))
	config.ReadyzChecks = append(config.ReadyzChecks, bolt.SpaceCheck(s.api, s.work))
	return nil
}

// monitorRecords returns a monitor that reports which of the controller's rows cannot be read. It adds the monitor to the
// storage of config, which must have been set, and to the readiness checks.
func (s *stores) monitorRecords(
	opts *options.StorageOptions, controller *encryption.RotationController, config *genericapiserver.Config,
) *unreadable.Monitor {
	monitor := unreadable.NewMonitor(recordsOf(opts, controller.Encrypter, controller.Rows), clock.RealClock{}, s.releasePages)
	config.RESTOptionsGetter = unreadable.NewRESTOptionsGetter(config.RESTOptionsGetter, monitor)
	config.ReadyzChecks = append(config.ReadyzChecks, monitor.HealthCheck())
	return monitor
}

// releasePages takes the pages of the files that were read out of the memory of the process. A check of all records reads the whole files.
func (s *stores) releasePages(ctx context.Context) {
	if s.api == nil {
		return
	}
	if err := errors.Join(s.api.ReleasePages(), s.work.ReleasePages()); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Failed to release the pages of the files")
	}
}

// recordsOf returns the stored records as the server reads them.
func recordsOf(opts *options.StorageOptions, encrypter *encryption.Encrypter, rows []encryption.Rows) *unreadable.Store {
	return &unreadable.Store{Encrypter: encrypter, Rows: rows, Decode: func(plain []byte) error {
		object, err := history.Decompress(plain)
		if err == nil {
			_, _, err = opts.Etcd.StorageConfig.Codec.Decode(object, nil, nil)
		}
		return err
	}}
}

// workStore returns the store of the working state: the second file, or the etcd of the objects. ctx must outlive its use.
func (s *stores) workStore(ctx context.Context, opts *options.StorageOptions, encrypter *encryption.Encrypter) *table.Store {
	client := s.client(ctx, s.work)
	return table.New(client.KV, keyspace.Work(opts.Etcd.StorageConfig.Prefix),
		table.WithTransformer(encrypter.Work()), table.WithWatcher(client.Watcher))
}

// encrypted returns all rows below a prefix that are stored encrypted. ctx must outlive its use.
func (s *stores) encrypted(ctx context.Context, prefix string) []encryption.Rows {
	return []encryption.Rows{
		encryption.Objects(s.client(ctx, s.api).KV, prefix),
		encryption.Work(s.client(ctx, s.work).KV, keyspace.Work(prefix)),
	}
}

// client returns a client of a file, or the client of etcd. ctx must outlive its use.
func (s *stores) client(ctx context.Context, file *bolt.Engine) *clientv3.Client {
	if s.etcd != nil {
		return s.etcd
	}
	return bolt.NewClient(ctx, file).Client
}

// The timeouts of the client that k8s.io/apiserver uses for objects.
const (
	etcdDialTimeout = 20 * time.Second
	// A connection is closed if etcd does not acknowledge a ping, which is sent after etcdKeepAliveTime without traffic, within
	// etcdKeepAliveTimeout. Without pings, a request to a node that has lost power would wait for the TCP timeout of the kernel.
	etcdKeepAliveTime    = 30 * time.Second
	etcdKeepAliveTimeout = 10 * time.Second
)

// newEtcdClient connects to the etcd of upstream's options. It uses only the values of ctx: the client lives until it is
// closed.
func newEtcdClient(ctx context.Context, transport storagebackend.TransportConfig) (*clientv3.Client, error) {
	config, err := etcdConfig(transport)
	if err != nil {
		return nil, err
	}
	config.Context = context.WithoutCancel(ctx)
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return client, nil
}

// etcdConfig returns the configuration of a client with the timeouts and certificates of k8s.io/apiserver's client.
func etcdConfig(transport storagebackend.TransportConfig) (clientv3.Config, error) {
	config := clientv3.Config{
		Endpoints: transport.ServerList, DialTimeout: etcdDialTimeout,
		DialKeepAliveTime: etcdKeepAliveTime, DialKeepAliveTimeout: etcdKeepAliveTimeout,
	}
	if transport.CertFile == "" && transport.KeyFile == "" && transport.TrustedCAFile == "" {
		return config, nil
	}
	info := etcdtransport.TLSInfo{CertFile: transport.CertFile, KeyFile: transport.KeyFile, TrustedCAFile: transport.TrustedCAFile}
	tls, err := info.ClientConfig()
	if err != nil {
		return clientv3.Config{}, fmt.Errorf("reading the certificates for etcd: %w", err)
	}
	config.TLS = tls
	return config, nil
}

// close closes files and connections. Nothing may use the stores any more.
func (s *stores) close() error {
	var errs []error
	for _, engine := range []*bolt.Engine{s.work, s.api} {
		if engine != nil {
			errs = append(errs, engine.Close())
		}
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Close())
	}
	if s.etcd != nil {
		errs = append(errs, s.etcd.Close())
	}
	return errors.Join(errs...)
}
