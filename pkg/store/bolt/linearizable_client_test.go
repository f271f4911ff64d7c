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

// notice is one end of a call, as it is written down: before it is made, or after it was answered.
type notice struct {
	Client int
	ID     int
	Call   *call   `json:",omitempty"`
	Answer *answer `json:",omitempty"`
}

// history is what clients wrote down, in order.
type history struct {
	mu     sync.Mutex
	events []porcupine.Event
	// open are the calls without an answer, and their clients.
	open map[int]int
}

func newHistory() *history { return &history{open: map[int]int{}} }

func (h *history) add(n notice) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.Call != nil {
		h.open[n.ID] = n.Client
		h.events = append(h.events, porcupine.Event{ClientId: n.Client, Kind: porcupine.CallEvent, Value: *n.Call, Id: n.ID})
		return nil
	}
	if _, found := h.open[n.ID]; !found {
		return fmt.Errorf("an answer to no call: %d", n.ID)
	}
	delete(h.open, n.ID)
	h.events = append(h.events, porcupine.Event{ClientId: n.Client, Kind: porcupine.ReturnEvent, Value: *n.Answer, Id: n.ID})
	return nil
}

// abandon writes down that nobody will know what became of the open calls, and that none of them has an effect from here
// on: the store they were made to is gone.
func (h *history) abandon() (abandoned int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, client := range h.open {
		h.events = append(h.events, porcupine.Event{ClientId: client, Kind: porcupine.ReturnEvent, Value: answer{Unknown: true}, Id: id})
		delete(h.open, id)
		abandoned++
	}
	return abandoned
}

// caller makes random calls, one after the other.
type caller struct {
	id     int
	client *clientv3.Client
	note   func(notice) error
	// seen are the last changes of keys that it knows of.
	seen [keyCount]int64
}

// run makes a number of calls, or goes on until it is killed if the number is negative.
func (c *caller) run(ctx context.Context, calls int) error {
	for ; calls != 0; calls-- {
		request, id := c.choose(), rand.Int()
		if err := c.note(notice{Client: c.id, ID: id, Call: &request}); err != nil {
			return err
		}
		told, err := perform(ctx, c.client, request)
		if err != nil {
			return fmt.Errorf("%s: %w", request.Kind, err)
		}
		c.learn(request, told)
		if err := c.note(notice{Client: c.id, ID: id, Answer: &told}); err != nil {
			return err
		}
	}
	return nil
}

// choose makes half of the calls changes that depend on what the caller has seen.
func (c *caller) choose() call {
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

func (c *caller) learn(request call, told answer) {
	switch request.Kind {
	case callPutAll:
		c.seen = [keyCount]int64{told.Revision, told.Revision, told.Revision}
	case callRange:
		for key, held := range told.Cells {
			c.seen[key] = held.Mod
		}
	default:
		c.seen[request.Key] = told.Cells[request.Key].Mod
		if writes := request.Kind == callPut || request.Kind == callCompareAndSet && told.Succeeded; writes {
			c.seen[request.Key] = told.Revision
		}
	}
}

func keyName(key int) string { return fmt.Sprintf("/keys/%d", key) }

func valueOf(n int64) string { return strconv.FormatInt(n, 10) }

// perform makes a call through etcd's client.
func perform(ctx context.Context, client *clientv3.Client, c call) (answer, error) {
	key := keyName(c.Key)
	switch c.Kind {
	case callPut:
		response, err := client.Put(ctx, key, valueOf(c.Value), clientv3.WithPrevKV())
		if err != nil {
			return answer{}, err
		}
		return newAnswer(response.Header.Revision, true, response.PrevKv)
	case callPutAll:
		return putAll(ctx, client, c)
	case callCompareAndSet:
		return swap(ctx, client, c)
	case callDelete:
		response, err := client.Delete(ctx, key, clientv3.WithPrevKV())
		if err != nil {
			return answer{}, err
		}
		return newAnswer(response.Header.Revision, response.Deleted == 1, response.PrevKvs...)
	default:
		return query(ctx, client, c)
	}
}

func putAll(ctx context.Context, client *clientv3.Client, c call) (answer, error) {
	var puts []clientv3.Op
	for key := range keyCount {
		puts = append(puts, clientv3.OpPut(keyName(key), valueOf(c.Value), clientv3.WithPrevKV()))
	}
	response, err := client.Txn(ctx).Then(puts...).Commit()
	if err != nil {
		return answer{}, err
	}
	var previous []*mvccpb.KeyValue
	for _, each := range response.Responses {
		previous = append(previous, each.GetResponsePut().PrevKv)
	}
	return newAnswer(response.Header.Revision, response.Succeeded, previous...)
}

func swap(ctx context.Context, client *clientv3.Client, c call) (answer, error) {
	key := keyName(c.Key)
	response, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", c.Expect)).
		Then(clientv3.OpPut(key, valueOf(c.Value), clientv3.WithPrevKV())).
		Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return answer{}, err
	}
	if response.Succeeded {
		return newAnswer(response.Header.Revision, true, response.Responses[0].GetResponsePut().PrevKv)
	}
	return newAnswer(response.Header.Revision, false, response.Responses[0].GetResponseRange().Kvs...)
}

func query(ctx context.Context, client *clientv3.Client, c call) (answer, error) {
	key, options := keyName(c.Key), []clientv3.OpOption(nil)
	if c.Kind == callRange {
		key, options = "/keys/", append(options, clientv3.WithPrefix())
	}
	if c.Serializable {
		options = append(options, clientv3.WithSerializable())
	}
	response, err := client.Get(ctx, key, options...)
	if err != nil {
		return answer{}, err
	}
	return newAnswer(response.Header.Revision, true, response.Kvs...)
}

// newAnswer puts what keys held into their cells; nil is a key that did not exist.
func newAnswer(revision int64, succeeded bool, kvs ...*mvccpb.KeyValue) (answer, error) {
	a := answer{Revision: revision, Succeeded: succeeded}
	for _, kv := range kvs {
		if kv == nil {
			continue
		}
		var key int
		if _, err := fmt.Sscanf(string(kv.Key), "/keys/%d", &key); err != nil {
			return a, fmt.Errorf("an answer about key %q: %w", kv.Key, err)
		}
		value, err := strconv.ParseInt(string(kv.Value), 10, 64)
		if err != nil {
			return a, fmt.Errorf("key %q: %w", kv.Key, err)
		}
		a.Cells[key] = cell{Value: value, Mod: kv.ModRevision, Create: kv.CreateRevision, Version: kv.Version}
	}
	return a, nil
}
