// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"k8s.io/apiserver/pkg/storage/etcd3/testserver"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

const prefix = "/slipstream/work"

// onBoth runs a test with bbolt and with etcd.
func onBoth(t *testing.T, test func(*testing.T, clientv3.KV)) {
	t.Helper()
	t.Run("bbolt", func(t *testing.T) { test(t, bolttest.NewKV(t)) })
	t.Run("etcd", func(t *testing.T) { test(t, etcdClient(t).KV) })
}

func etcdClient(t *testing.T) *clientv3.Client {
	t.Helper()
	client := testserver.RunEtcd(t, nil)
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return client.Client
}

func put(t *testing.T, table *storetable.Table, rows ...storetable.Row) {
	t.Helper()
	if err := table.Put(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
}

func row(key, value string) storetable.Row {
	return storetable.Row{Key: key, Value: []byte(value)}
}

// scan formats rows as key=value.
func scan(t *testing.T, table *storetable.Table, prefix, from string) (found []string) {
	t.Helper()
	for row, err := range table.ScanFrom(t.Context(), prefix, from) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, row.Key+"="+string(row.Value))
	}
	return found
}

func TestRows(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		ctx := t.Context()
		table := storetable.New(kv, prefix).Table("outbox")
		if value, found, err := table.Get(ctx, "a"); found || err != nil {
			t.Fatalf("row of an empty table: %q, %v, %v", value, found, err)
		}
		put(t, table, row("b", "2"), row("a", "0"), row("c", ""), row("a", "1"))
		put(t, table, row("b", "3"))
		if got, want := scan(t, table, "", ""), []string{"a=1", "b=3", "c="}; !slices.Equal(got, want) {
			t.Errorf("rows %q, want %q", got, want)
		}
		if value, found, err := table.Get(ctx, "b"); string(value) != "3" || !found || err != nil {
			t.Errorf("row b: %q, %v, %v", value, found, err)
		}
		if err := table.Delete(ctx, "a", "missing", "a", "c"); err != nil {
			t.Fatal(err)
		}
		if got, want := scan(t, table, "", ""), []string{"b=3"}; !slices.Equal(got, want) {
			t.Errorf("rows after delete %q, want %q", got, want)
		}
		if err := errors.Join(table.Put(ctx), table.Delete(ctx)); err != nil {
			t.Errorf("nothing to do: %v", err)
		}
	})
}

func TestRowIsCreatedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		table := storetable.New(kv, prefix, storetable.WithTransformer(encrypting{})).Table("keys")
		values := make([]string, 16)
		group, ctx := errgroup.WithContext(t.Context())
		for i := range values {
			group.Go(func() error {
				value, err := table.Create(ctx, row("a", fmt.Sprint(i)))
				values[i] = string(value)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		stored, found, err := table.Get(t.Context(), "a")
		if !found || err != nil || len(slices.Compact(values)) != 1 || values[0] != string(stored) {
			t.Errorf("created %q, the row is %q (%v)", values, stored, err)
		}
	})
}

func TestRowWithoutKeyIsRefused(t *testing.T) {
	table := storetable.New(bolttest.NewKV(t), prefix).Table("outbox")
	_, _, getErr := table.Get(t.Context(), "")
	_, createErr := table.Create(t.Context(), row("", "x"))
	for what, err := range map[string]error{
		"put":    table.Put(t.Context(), row("", "x")),
		"delete": table.Delete(t.Context(), ""),
		"get":    getErr,
		"create": createErr,
	} {
		if err == nil {
			t.Errorf("%s of a row without a key did not fail", what)
		}
	}
}

func TestScanAndCount(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		table := storetable.New(kv, prefix).Table("outbox")
		for _, key := range []string{"a/1", "a/2", "a/3", "a", "b/1", "a\xff", "\x00"} {
			put(t, table, row(key, "."))
		}
		tests := map[string]struct {
			prefix, from string
			want         []string
		}{
			"all":             {want: []string{"\x00", "a", "a/1", "a/2", "a/3", "a\xff", "b/1"}},
			"folder":          {prefix: "a/", want: []string{"a/1", "a/2", "a/3"}},
			"prefix":          {prefix: "a", want: []string{"a", "a/1", "a/2", "a/3", "a\xff"}},
			"from":            {prefix: "a/", from: "a/2", want: []string{"a/2", "a/3"}},
			"from before":     {prefix: "a/", from: "\x00", want: []string{"a/1", "a/2", "a/3"}},
			"from behind":     {prefix: "a/", from: "b", want: nil},
			"prefix of none":  {prefix: "z", want: nil},
			"last byte value": {prefix: "a\xff", want: []string{"a\xff"}},
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				var got []string
				for _, found := range scan(t, table, test.prefix, test.from) {
					got = append(got, strings.TrimSuffix(found, "=."))
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("rows %q, want %q", got, test.want)
				}
				if test.from != "" {
					return
				}
				if n, err := table.Count(t.Context(), test.prefix); err != nil || n != int64(len(test.want)) {
					t.Errorf("count %d (%v), want %d", n, err, len(test.want))
				}
			})
		}
	})
}

func TestTablesAreApart(t *testing.T) {
	store := storetable.New(bolttest.NewKV(t), prefix)
	for _, name := range []string{"a", "a/b", "a%2Fb", "", "ab"} {
		put(t, store.Table(name), row("b/x", name))
	}
	for _, name := range []string{"a", "a/b", "a%2Fb", "", "ab"} {
		if got, want := scan(t, store.Table(name), "", ""), []string{"b/x=" + name}; !slices.Equal(got, want) {
			t.Errorf("table %q has rows %q, want %q", name, got, want)
		}
	}
}

// TestMoreRowsThanATransaction writes and scans more rows than fit into a transaction or a page.
func TestMoreRowsThanATransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		const n = 6*storetable.MaxAtomicRows + 5
		table := storetable.New(kv, prefix).Table("index")
		var rows []storetable.Row
		var keys, want []string
		for i := range n {
			key := fmt.Sprintf("%06d", i)
			rows, keys, want = append(rows, row(key, key)), append(keys, key), append(want, key+"="+key)
		}
		rand.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		put(t, table, rows...)
		if got := scan(t, table, "", ""); !slices.Equal(got, want) {
			t.Errorf("scan found %d rows, want %d in order", len(got), n)
		}
		if err := table.Delete(t.Context(), keys...); err != nil {
			t.Fatal(err)
		}
		if left, err := table.Count(t.Context(), ""); err != nil || left != 0 {
			t.Errorf("%d rows left (%v)", left, err)
		}
	})
}

func TestLargeRows(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		table := storetable.New(kv, prefix).Table("copies")
		large := bytes.Repeat([]byte("x"), storetable.MaxAtomicBytes)
		put(t, table, storetable.Row{Key: "1", Value: large}, storetable.Row{Key: "2", Value: large}, row("3", "small"))
		if value, _, err := table.Get(t.Context(), "2"); err != nil || !bytes.Equal(value, large) {
			t.Errorf("large row has %d bytes (%v), want %d", len(value), err, len(large))
		}
		tooLarge := bytes.Repeat([]byte("x"), storetable.MaxAtomicBytes*7/4)
		err := table.Put(t.Context(), storetable.Row{Key: "4", Value: tooLarge})
		if !errors.Is(err, rpctypes.ErrRequestTooLarge) {
			t.Errorf("row beyond the limit: %v, want %v", err, rpctypes.ErrRequestTooLarge)
		}
	})
}

// TestFirstKeys reads more spans than a transaction has operations.
func TestFirstKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		of := storetable.New(kv, prefix).Table("outbox")
		put(t, of, row("a/1", "x"), row("a/2", "x"), row("a/3", "x"), row("b/1", "x"))
		put(t, storetable.New(kv, prefix).Table("outbox2"), row("c/1", "x"))
		spans := []storetable.Span{{From: "a/", To: "a0", Limit: 2}, {From: "a/2\x00", To: "", Limit: 10}, {From: "", To: "a/", Limit: 1}, {Limit: 1}}
		want := []string{"[a/1 a/2]", "[a/3 b/1]", "[]", "[a/1]"}
		for range storetable.MaxAtomicRows {
			spans, want = append(spans, storetable.Span{From: "b", To: "c", Limit: 1}), append(want, "[b/1]")
		}
		found, err := of.FirstKeys(t.Context(), spans...)
		if err != nil || len(found) != len(want) {
			t.Fatalf("%d results, %v", len(found), err)
		}
		for i, keys := range found {
			if got := fmt.Sprint(keys); got != want[i] {
				t.Errorf("%+v: %s, want %s", spans[i], got, want[i])
			}
		}
	})
}

func TestScanStopsWhenAsked(t *testing.T) {
	table := storetable.New(bolttest.NewKV(t), prefix).Table("outbox")
	put(t, table, row("1", ""), row("2", ""), row("3", ""))
	var seen []string
	for row, err := range table.Scan(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, row.Key); len(seen) == 2 {
			break
		}
	}
	if !slices.Equal(seen, []string{"1", "2"}) {
		t.Errorf("saw %q", seen)
	}
}

func TestScanAfterCancelFails(t *testing.T) {
	table := storetable.New(bolttest.NewKV(t), prefix).Table("outbox")
	put(t, table, row("1", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var got error
	for _, err := range table.Scan(ctx, "") {
		got = err
	}
	if !errors.Is(got, context.Canceled) {
		t.Errorf("scan with a context that has ended: %v", got)
	}
}

// encrypting encrypts a value by reversing it and prepending the key that it belongs to.
type encrypting struct{}

var errWrongKey = errors.New("encrypted for another key")

func (encrypting) TransformToStorage(_ context.Context, plain []byte, of value.Context) ([]byte, error) {
	reversed := slices.Clone(plain)
	slices.Reverse(reversed)
	return append(append(slices.Clone(of.AuthenticatedData()), 0), reversed...), nil
}

func (encrypting) TransformFromStorage(_ context.Context, encrypted []byte, of value.Context) ([]byte, bool, error) {
	key, reversed, found := bytes.Cut(encrypted, []byte{0})
	if !found || !bytes.Equal(key, of.AuthenticatedData()) {
		return nil, false, errWrongKey
	}
	plain := slices.Clone(reversed)
	slices.Reverse(plain)
	return plain, false, nil
}

func TestValuesAreEncryptedForTheirKey(t *testing.T) {
	kv := bolttest.NewKV(t)
	table := storetable.New(kv, prefix, storetable.WithTransformer(encrypting{})).Table("copies")
	put(t, table, row("a", "secret"))
	if got, want := scan(t, table, "", ""), []string{"a=secret"}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	raw, err := kv.Get(t.Context(), "/slipstream/work/copies/a")
	if err != nil || len(raw.Kvs) != 1 || bytes.Contains(raw.Kvs[0].Value, []byte("secret")) {
		t.Fatalf("the store holds %v (%v)", raw.Kvs, err)
	}
	if _, err := kv.Put(t.Context(), "/slipstream/work/copies/b", string(raw.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := table.Get(t.Context(), "b"); !errors.Is(err, errWrongKey) {
		t.Errorf("value moved to another key: %v", err)
	}
	var scanErr error
	for _, err := range table.Scan(t.Context(), "b") {
		scanErr = err
	}
	if !errors.Is(scanErr, errWrongKey) {
		t.Errorf("scan of a value moved to another key: %v", scanErr)
	}
	put(t, table, row("c", "public"))
	var each []string
	for row, err := range table.ScanEach(t.Context(), "", "") {
		var unopened *storetable.UnopenedError
		if errors.As(err, &unopened) != (row.Key == "b") || err != nil && unopened.Key != table.FullKey("b") {
			t.Errorf("row %s: %v", row.Key, err)
		}
		each = append(each, row.Key+"="+string(row.Value))
	}
	if want := []string{"a=secret", "b=", "c=public"}; !slices.Equal(each, want) {
		t.Errorf("each of the rows %q, want %q", each, want)
	}
}

func TestConcurrentWriters(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		const writers, each = 32, 8
		table := storetable.New(kv, prefix).Table("outbox")
		group, ctx := errgroup.WithContext(t.Context())
		for w := range writers {
			group.Go(func() error {
				for i := range each {
					if err := table.Put(ctx, row(fmt.Sprintf("%d/%d", w, i), "x")); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if n, err := table.Count(t.Context(), ""); err != nil || n != writers*each {
			t.Errorf("%d rows (%v), want %d", n, err, writers*each)
		}
	})
}

// BenchmarkPut writes one row at a time, with 1 and with 32 callers.
func BenchmarkPut(b *testing.B) {
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			table := storetable.New(bolttest.NewKV(b), prefix).Table("outbox")
			value := bytes.Repeat([]byte("x"), 1000)
			b.ResetTimer()
			group, ctx := errgroup.WithContext(b.Context())
			for c := range callers {
				group.Go(func() error {
					for i := c; i < b.N; i += callers {
						if err := table.Put(ctx, storetable.Row{Key: fmt.Sprintf("%09d", i), Value: value}); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
