// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"k8s.io/apiserver/pkg/storage/etcd3/testserver"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// runEtcd starts an etcd server for the test.
func runEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	client := testserver.RunEtcd(t, nil)
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return client.Client
}

// TestResponsesMatchEtcd sends the same random requests to etcd and to an engine. Responses, errors and revisions must be
// the same.
func TestResponsesMatchEtcd(t *testing.T) {
	t.Parallel() // It mostly waits for etcd.
	const requests = 3000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	etcd := runEtcd(t)
	engine := bolt.NewClient(t.Context(), openEngine(t, bolt.Options{})).Client
	g := &requestGenerator{random: rand.New(rand.NewPCG(seed, 0)), revision: 1}
	for i := range requests {
		op := g.next()
		want, wantErr := do(t.Context(), etcd, op)
		got, gotErr := do(t.Context(), engine, op)
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("request %d: %s\nerror %v\netcd  %v", i, describe(op), gotErr, wantErr)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Fatalf("request %d: %s\nresponse differs from etcd's (-etcd +here):\n%s", i, describe(op), diff)
		}
		if wantErr == nil {
			g.revision = want.Header.Revision
		}
	}
}

// do sends a request and returns the response without the fields that depend on the server.
func do(ctx context.Context, client *clientv3.Client, op any) (*pb.TxnResponse, error) {
	switch op := op.(type) {
	case compactTo:
		response, err := client.Compact(ctx, int64(op))
		if err != nil {
			return nil, err
		}
		return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: response.Header.Revision}}, nil
	case clientv3.Op:
		compares, success, failure := op.Txn()
		response, err := client.Txn(ctx).If(compares...).Then(success...).Else(failure...).Commit()
		if err != nil {
			return nil, err
		}
		return stripped((*pb.TxnResponse)(response)), nil
	default:
		panic(fmt.Sprintf("unknown request: %T", op))
	}
}

func stripped(response *pb.TxnResponse) *pb.TxnResponse {
	response = proto.Clone(response).(*pb.TxnResponse)
	response.Header = &pb.ResponseHeader{Revision: response.Header.Revision}
	for _, op := range response.Responses {
		if r := op.GetResponseRange(); r != nil {
			r.Header = nil
		}
		if r := op.GetResponsePut(); r != nil {
			r.Header = nil
		}
		if r := op.GetResponseDeleteRange(); r != nil {
			r.Header = nil
		}
	}
	return response
}

func describe(op any) string {
	if txn, ok := op.(clientv3.Op); ok {
		compares, success, failure := txn.Txn()
		return fmt.Sprintf("if %+v then %+v else %+v", compares, success, failure)
	}
	return fmt.Sprintf("%T(%v)", op, op)
}

// compactTo is a compaction request for a revision.
type compactTo int64

// requestGenerator generates requests for few keys, so that they conflict often.
type requestGenerator struct {
	random *rand.Rand
	// revision is the last revision seen, compacted the last one for which compaction was requested.
	revision, compacted int64
}

func (g *requestGenerator) next() any {
	if g.random.IntN(50) == 0 {
		g.compacted = max(1, g.revision-g.random.Int64N(20)+2)
		return compactTo(g.compacted)
	}
	return clientv3.OpTxn(repeat(g, 2, g.compare), repeat(g, 4, g.operation), repeat(g, 2, g.operation))
}

func repeat[T any](g *requestGenerator, atMost int, one func() T) (all []T) {
	for range g.random.IntN(atMost + 1) {
		all = append(all, one())
	}
	return all
}

func (g *requestGenerator) key() string {
	return pick(g, "/a/", "/a/1", "/a/2", "/a/b/1", "/a/b/2", "/b/1", "a", "z")
}

func pick[T any](g *requestGenerator, choices ...T) T {
	return choices[g.random.IntN(len(choices))]
}

func (g *requestGenerator) someRevision() int64 {
	return max(0, g.revision-g.random.Int64N(30)+2)
}

func (g *requestGenerator) compare() clientv3.Cmp {
	key, result := g.key(), pick(g, "=", "!=", "<", ">")
	number := pick(g, 0, 1, g.someRevision())
	var c clientv3.Cmp
	switch g.random.IntN(4) {
	case 0:
		c = clientv3.Compare(clientv3.ModRevision(key), result, number)
	case 1:
		c = clientv3.Compare(clientv3.CreateRevision(key), result, number)
	case 2:
		c = clientv3.Compare(clientv3.Version(key), result, number)
	default:
		c = clientv3.Compare(clientv3.Value(key), result, pick(g, "", "x", "y"))
	}
	if g.random.IntN(4) == 0 {
		return c.WithPrefix()
	}
	return c
}

func (g *requestGenerator) operation() clientv3.Op {
	switch g.random.IntN(4) {
	case 0:
		return clientv3.OpGet(g.key(), g.rangeOptions()...)
	case 1:
		return clientv3.OpDelete(g.key(), g.deleteOptions()...)
	default:
		return g.put()
	}
}

func (g *requestGenerator) put() clientv3.Op {
	switch g.random.IntN(12) {
	case 0:
		return clientv3.OpPut(g.key(), "", clientv3.WithIgnoreValue())
	case 1:
		return clientv3.OpPut(g.key(), "x", clientv3.WithLease(404))
	case 2:
		return clientv3.OpPut(g.key(), "x", clientv3.WithIgnoreLease())
	case 3:
		return clientv3.OpPut("", "x")
	default:
		value := pick(g, "", "x", "y", "z")
		if g.random.IntN(2) == 0 {
			return clientv3.OpPut(g.key(), value, clientv3.WithPrevKV())
		}
		return clientv3.OpPut(g.key(), value)
	}
}

func (g *requestGenerator) span() []clientv3.OpOption {
	switch g.random.IntN(4) {
	case 0:
		return []clientv3.OpOption{clientv3.WithPrefix()}
	case 1:
		return []clientv3.OpOption{clientv3.WithFromKey()}
	case 2:
		return []clientv3.OpOption{clientv3.WithRange(g.key() + "x")}
	default:
		return nil
	}
}

// deleteOptions never returns an open-ended range. etcd does not detect that such a delete overlaps a put of the same
// transaction, which an engine rejects.
func (g *requestGenerator) deleteOptions() []clientv3.OpOption {
	options := pick(g, nil, []clientv3.OpOption{clientv3.WithPrefix()}, []clientv3.OpOption{clientv3.WithRange(g.key() + "x")})
	if g.random.IntN(2) == 0 {
		options = append(options, clientv3.WithPrevKV())
	}
	return options
}

func (g *requestGenerator) rangeOptions() []clientv3.OpOption {
	options := g.span()
	for _, option := range []clientv3.OpOption{
		clientv3.WithRev(g.someRevision()), clientv3.WithLimit(g.random.Int64N(4)), clientv3.WithKeysOnly(), clientv3.WithCountOnly(),
		clientv3.WithMinModRev(g.someRevision()), clientv3.WithMaxCreateRev(g.someRevision()),
		clientv3.WithSort(clientv3.SortByKey, pick(g, clientv3.SortAscend, clientv3.SortDescend)),
		clientv3.WithSort(clientv3.SortByModRevision, pick(g, clientv3.SortAscend, clientv3.SortDescend)),
		clientv3.WithSort(clientv3.SortByVersion, clientv3.SortDescend),
		clientv3.WithSort(clientv3.SortByValue, clientv3.SortAscend),
	} {
		if g.random.IntN(6) == 0 {
			options = append(options, option)
		}
	}
	return options
}
