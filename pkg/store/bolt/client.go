// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
)

// etcdVersion is the version of etcd whose behaviour the engine implements.
const etcdVersion = "3.7.0"

// errUnsupported is the error of requests that a store in the same process does not support: users, cluster members,
// snapshots over the network.
var errUnsupported = status.Error(codes.Unimplemented, "not supported by the bbolt store")

// NewClient returns etcd's client for Kubernetes on an engine in the same
// process, without any connection. Requests, transactions and leases go through
// etcd's own client code, which finds the engine where it expects a server. What
// the engine does not offer (Auth, Cluster, Maintenance but Status) answers a gRPC
// error with code Unimplemented.
//
// Closing the client, or the end of ctx, ends its watches and stops keeping its
// leases alive; the engine stays open.
func NewClient(ctx context.Context, e *Engine) *kubernetes.Client {
	c := clientv3.NewCtxClient(ctx)
	c.KV = clientv3.NewKVFromKVClient(kvClient{engine: e}, nil)
	c.Lease = clientv3.NewLeaseFromLeaseClient(leaseClient{engine: e}, c, time.Second)
	c.Watcher = &watcher{engine: e, closed: c.Ctx()}
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(
		maintenanceClient{MaintenanceClient: pb.NewMaintenanceClient(noConnection{}), engine: e}, c)
	c.Auth = clientv3.NewAuthFromAuthClient(pb.NewAuthClient(noConnection{}), c)
	c.Cluster = clientv3.NewClusterFromClusterClient(pb.NewClusterClient(noConnection{}), c)
	// Close always succeeds, and may be called again.
	context.AfterFunc(c.Ctx(), func() { _ = c.Lease.Close() }) //nolint:contextcheck // The client has a context of its own.
	announceFeatures(ctx, c)
	client := &kubernetes.Client{Client: c}
	client.Kubernetes = client
	return client
}

// announceFeatures registers the engine's features with upstream's process-wide check. That check queries the endpoints
// of a client, and this one has none; without the registration, consistent reads bypass the watch cache and watch lists
// are refused.
func announceFeatures(ctx context.Context, c *clientv3.Client) {
	ctx = context.WithoutCancel(ctx)
	checker := etcdfeature.DefaultFeatureSupportChecker
	checker.CheckClient(ctx, endpoint{c}, storage.RequestWatchProgress)
	// The check runs in a goroutine of its own and takes no time. An endpoint that
	// is known to lack the feature leaves it unsupported for good.
	_ = wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Second, true, func(context.Context) (bool, error) {
		return checker.Supports(storage.RequestWatchProgress), nil
	})
}

// endpoint is a client with an endpoint for that check.
type endpoint struct{ *clientv3.Client }

func (endpoint) Endpoints() []string { return []string{"bbolt"} }

// kvClient implements the KV service of etcd's client with the engine.
type kvClient struct{ engine *Engine }

var _ pb.KVClient = kvClient{}

func (c kvClient) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return c.engine.Range(ctx, r)
}

func (c kvClient) RangeStream(
	ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[pb.RangeStreamResponse], error) {
	return newRangeStream(ctx, c.engine, r)
}

func (c kvClient) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return c.engine.Put(ctx, r)
}

func (c kvClient) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return c.engine.DeleteRange(ctx, r)
}

func (c kvClient) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return c.engine.Txn(ctx, r)
}

func (c kvClient) Compact(ctx context.Context, r *pb.CompactionRequest, _ ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return c.engine.Compact(ctx, r)
}

// watcher implements clientv3.Watcher. It is not built on etcd's, which buffers without bound for a slow reader.
type watcher struct {
	engine *Engine
	// closed ends with the client.
	closed context.Context //nolint:containedctx // The life of the client, as clientv3.Client keeps it.
}

var _ clientv3.Watcher = (*watcher)(nil)

// Watch sends the changes from its call on, or from the given revision, at the reader's pace: a slow reader delays only
// its own watch, and misses nothing until the history that it still needs is compacted.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(w.closed, cancel) //nolint:contextcheck // The client's life ends a watch as its caller's context does.
	watch := w.engine.watches.newWatch(clientv3.OpWatch(key, opts...), progressGroup(ctx), out)
	go func() {
		defer cancel()
		defer stop()
		watch.serve(ctx)
	}()
	return out
}

// RequestProgress requests a progress report from the watches whose context has the same outgoing metadata.
func (w *watcher) RequestProgress(ctx context.Context) error {
	w.engine.watches.progress.request(progressGroup(ctx))
	return ctx.Err()
}

// Close does nothing: watches end with the client.
func (w *watcher) Close() error { return nil }

func progressGroup(ctx context.Context) string {
	if md, found := metadata.FromOutgoingContext(ctx); found {
		return fmt.Sprint(md)
	}
	return ""
}

// maintenanceClient implements Status; all other requests are unsupported.
type maintenanceClient struct {
	pb.MaintenanceClient
	engine *Engine
}

func (c maintenanceClient) Status(context.Context, *pb.StatusRequest, ...grpc.CallOption) (*pb.StatusResponse, error) {
	size, used, err := c.engine.reader.size()
	if err != nil {
		return nil, fmt.Errorf("reading the size of the store: %w", err)
	}
	return &pb.StatusResponse{
		Header: c.engine.header(c.engine.Revision()), Version: etcdVersion,
		DbSize: size, DbSizeInUse: used, StorageVersion: etcdVersion,
	}, nil
}

// noConnection is the connection of clients for services that the engine does not have.
type noConnection struct{}

var _ grpc.ClientConnInterface = noConnection{}

func (noConnection) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return errUnsupported
}

func (noConnection) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errUnsupported
}
