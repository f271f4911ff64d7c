// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// callEvent is the start or the end of a call.
type callEvent struct {
	Client int
	ID     int
	Call   *call   `json:",omitempty"`
	Result *result `json:",omitempty"`
}

// history records the events of all clients in order.
type history struct {
	mu     sync.Mutex
	events []porcupine.Event
	// open maps each call without a result to its client.
	open map[int]int
}

func newHistory() *history { return &history{open: map[int]int{}} }

func (h *history) add(n callEvent) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.Call != nil {
		h.open[n.ID] = n.Client
		h.events = append(h.events, porcupine.Event{ClientId: n.Client, Kind: porcupine.CallEvent, Value: *n.Call, Id: n.ID})
		return nil
	}
	if _, found := h.open[n.ID]; !found {
		return fmt.Errorf("result of unknown call %d", n.ID)
	}
	delete(h.open, n.ID)
	h.events = append(h.events, porcupine.Event{ClientId: n.Client, Kind: porcupine.ReturnEvent, Value: *n.Result, Id: n.ID})
	return nil
}

// abandon ends all open calls with an unknown result. The store that they were sent to must have been killed, so that none
// of them can still take effect.
func (h *history) abandon() (abandoned int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, client := range h.open {
		h.events = append(h.events, porcupine.Event{ClientId: client, Kind: porcupine.ReturnEvent, Value: result{Unknown: true}, Id: id})
		delete(h.open, id)
		abandoned++
	}
	return abandoned
}

// worker makes random calls, one after the other.
type worker struct {
	id     int
	client *clientv3.Client
	record func(callEvent) error
	// seen holds the last revision of each key that the worker knows.
	seen [keyCount]int64
}

// run makes the given number of calls, or an unlimited number if calls is negative.
func (c *worker) run(ctx context.Context, calls int) error {
	for ; calls != 0; calls-- {
		request, id := c.choose(), rand.Int()
		if err := c.record(callEvent{Client: c.id, ID: id, Call: &request}); err != nil {
			return err
		}
		got, err := perform(ctx, c.client, request)
		if err != nil {
			return fmt.Errorf("%s: %w", request.Kind, err)
		}
		c.observe(request, got)
		if err := c.record(callEvent{Client: c.id, ID: id, Result: &got}); err != nil {
			return err
		}
	}
	return nil
}

// choose returns a random call. About half of the calls depend on what the worker has seen.
func (c *worker) choose() call {
	kinds := []string{
		callCompareAndSet, callCompareAndSet, callCompareAndSet, callCompareAndSet,
		callPut, callPutAll, callDelete, callGet, callGet, callRange,
	}
	key := rand.IntN(keyCount)
	request := call{Kind: kinds[rand.IntN(len(kinds))], Key: key, Value: rand.Int64()}
	if request.Kind == callCompareAndSet {
		request.Expect = c.seen[key]
	}
	request.Serializable = request.reads() && rand.IntN(2) == 0
	return request
}

func (c *worker) observe(request call, got result) {
	switch request.Kind {
	case callPutAll:
		c.seen = [keyCount]int64{got.Revision, got.Revision, got.Revision}
	case callRange:
		for key, held := range got.Keys {
			c.seen[key] = held.Mod
		}
	default:
		c.seen[request.Key] = got.Keys[request.Key].Mod
		if writes := request.Kind == callPut || request.Kind == callCompareAndSet && got.Succeeded; writes {
			c.seen[request.Key] = got.Revision
		}
	}
}

func keyName(key int) string { return fmt.Sprintf("/keys/%d", key) }

func valueOf(n int64) string { return strconv.FormatInt(n, 10) }

// perform makes a call through etcd's client.
func perform(ctx context.Context, client *clientv3.Client, c call) (result, error) {
	key := keyName(c.Key)
	switch c.Kind {
	case callPut:
		response, err := client.Put(ctx, key, valueOf(c.Value), clientv3.WithPrevKV())
		if err != nil {
			return result{}, err
		}
		return newResult(response.Header.Revision, true, response.PrevKv)
	case callPutAll:
		return putAll(ctx, client, c)
	case callCompareAndSet:
		return swap(ctx, client, c)
	case callDelete:
		response, err := client.Delete(ctx, key, clientv3.WithPrevKV())
		if err != nil {
			return result{}, err
		}
		return newResult(response.Header.Revision, response.Deleted == 1, response.PrevKvs...)
	default:
		return query(ctx, client, c)
	}
}

func putAll(ctx context.Context, client *clientv3.Client, c call) (result, error) {
	var puts []clientv3.Op
	for key := range keyCount {
		puts = append(puts, clientv3.OpPut(keyName(key), valueOf(c.Value), clientv3.WithPrevKV()))
	}
	response, err := client.Txn(ctx).Then(puts...).Commit()
	if err != nil {
		return result{}, err
	}
	var previous []*mvccpb.KeyValue
	for _, each := range response.Responses {
		previous = append(previous, each.GetResponsePut().PrevKv)
	}
	return newResult(response.Header.Revision, response.Succeeded, previous...)
}

func swap(ctx context.Context, client *clientv3.Client, c call) (result, error) {
	key := keyName(c.Key)
	response, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", c.Expect)).
		Then(clientv3.OpPut(key, valueOf(c.Value), clientv3.WithPrevKV())).
		Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return result{}, err
	}
	if response.Succeeded {
		return newResult(response.Header.Revision, true, response.Responses[0].GetResponsePut().PrevKv)
	}
	return newResult(response.Header.Revision, false, response.Responses[0].GetResponseRange().Kvs...)
}

func query(ctx context.Context, client *clientv3.Client, c call) (result, error) {
	key, options := keyName(c.Key), []clientv3.OpOption(nil)
	if c.Kind == callRange {
		key, options = "/keys/", append(options, clientv3.WithPrefix())
	}
	if c.Serializable {
		options = append(options, clientv3.WithSerializable())
	}
	response, err := client.Get(ctx, key, options...)
	if err != nil {
		return result{}, err
	}
	return newResult(response.Header.Revision, true, response.Kvs...)
}

// newResult returns a result with the previous or current states of keys. A nil entry is a key that did not exist.
func newResult(revision int64, succeeded bool, kvs ...*mvccpb.KeyValue) (result, error) {
	a := result{Revision: revision, Succeeded: succeeded}
	for _, kv := range kvs {
		if kv == nil {
			continue
		}
		var key int
		if _, err := fmt.Sscanf(string(kv.Key), "/keys/%d", &key); err != nil {
			return a, fmt.Errorf("result for key %q: %w", kv.Key, err)
		}
		value, err := strconv.ParseInt(string(kv.Value), 10, 64)
		if err != nil {
			return a, fmt.Errorf("key %q: %w", kv.Key, err)
		}
		a.Keys[key] = keyState{Value: value, Mod: kv.ModRevision, Create: kv.CreateRevision, Version: kv.Version}
	}
	return a, nil
}
