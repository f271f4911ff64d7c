// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/test/testkit"
)

// Prefixes of what is stored.
const (
	objects = "/registry/configbutler.ai/gitrepoconfigs/ns/"
	work    = "/registry-work/outbox/"
)

// quick are the times of a fast rotation.
var quick = encryption.Times{Look: 5 * time.Millisecond, Settle: 50 * time.Millisecond, History: 100 * time.Millisecond, Walk: time.Hour}

// lead runs a controller until stop is called, or the test ends.
func lead(t *testing.T, kv clientv3.KV, encrypter *encryption.Encrypter, times encryption.Times) (stop func()) {
	t.Helper()
	controller := &encryption.RotationController{
		Encrypter: encrypter, Times: times, Rows: []encryption.Rows{encryption.Objects(kv, "/registry"), encryption.Work(kv, "/registry-work")},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- controller.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// stored returns the key by which each row is encrypted, in key order.
func stored(t *testing.T, kv clientv3.KV, prefix string) (by []string) {
	t.Helper()
	answer, err := kv.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range answer.Kvs {
		by = append(by, encryption.EncryptedBy(row.Value))
	}
	return by
}

// allEncryptedBy waits until every row below the prefixes is encrypted by a key.
func allEncryptedBy(t *testing.T, kv clientv3.KV, key string, prefixes ...string) {
	t.Helper()
	testkit.Eventually(t, "every row to be encrypted with "+key, func() error {
		for _, prefix := range prefixes {
			for _, by := range stored(t, kv, prefix) {
				if !strings.Contains(by, key) {
					return fmt.Errorf("%s has a row that is encrypted with %q", prefix, by)
				}
			}
		}
		return nil
	})
}

// plain decrypts a row.
func plain(t *testing.T, kv clientv3.KV, encrypter *encryption.Encrypter, resource schema.GroupResource, key string) string {
	t.Helper()
	answer, err := kv.Get(t.Context(), key)
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("row %s: %v (%v)", key, answer.Kvs, err)
	}
	opened, _, err := encrypter.Transformers().TransformerForResource(resource).
		TransformFromStorage(t.Context(), answer.Kvs[0].Value, value.DefaultContext(key))
	if err != nil {
		t.Fatalf("decrypting %s: %v", key, err)
	}
	return string(opened)
}

// fill writes n objects and rows, every third of them without encryption.
func fill(t *testing.T, kv clientv3.KV, encrypter *encryption.Encrypter, n int) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("%04d", i)
		if i%3 == 0 {
			putRaw(t, kv, objects+name, []byte(name))
			putRaw(t, kv, work+name, []byte(name))
			continue
		}
		putEncrypted(t, kv, encrypter, repositories, objects+name, name)
		putEncrypted(t, kv, encrypter, encryption.WorkResource, work+name, name)
	}
}

func TestRotation(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		onEveryHome(t, func(t *testing.T, home encryption.Home) {
			ensure(t, home)
			encrypter := open(t, home)
			fill(t, kv, encrypter, 20)
			const foreign, beside = "/registry/other.io/things/ns/a", "/registry-workshop/a"
			putRaw(t, kv, foreign, []byte("theirs"))
			putRaw(t, kv, beside, []byte("theirs"))
			first := keys(t, home)[0]
			lead(t, kv, encrypter, quick)
			allEncryptedBy(t, kv, first, objects, work)

			second := rotate(t, home)
			allEncryptedBy(t, kv, second, objects, work)
			testkit.Eventually(t, "the old key to be taken out", func() error {
				if found := keys(t, home); !slices.Equal(found, []string{second}) {
					return fmt.Errorf("keys %q, want %q only", found, second)
				}
				return nil
			})
			for i := range 20 {
				name := fmt.Sprintf("%04d", i)
				if got := plain(t, kv, encrypter, repositories, objects+name); got != name {
					t.Errorf("object %s has become %q", name, got)
				}
				if got := plain(t, kv, encrypter, encryption.WorkResource, work+name); got != name {
					t.Errorf("row %s has become %q", name, got)
				}
			}
			for _, key := range []string{foreign, beside} {
				if by := stored(t, kv, key); !slices.Equal(by, []string{""}) {
					t.Errorf("%s is outside of the prefixes and encrypted with %q", key, by)
				}
			}
		})
	})
}

// TestReplicaThatIsSlowOpensEverything reloads the configuration rarely, as a replica that has just missed a change: no
// row may be encrypted meanwhile with a key that it does not have.
func TestReplicaThatIsSlowOpensEverything(t *testing.T) {
	kv, home := bolttest.NewKV(t), newSecret()
	ensure(t, home)
	times := quick
	times.Settle, times.History = 2*time.Second, time.Hour
	encrypter := open(t, home)
	fill(t, kv, encrypter, 10)
	slow, err := encryption.Open(t.Context(), encryption.Config{Origin: home, Reload: true, ReloadInterval: times.Settle / 8})
	if err != nil {
		t.Fatal(err)
	}
	lead(t, kv, encrypter, times)
	first, second := keys(t, home)[0], rotate(t, home)
	for keys(t, home)[0] != second {
		for i := range 10 {
			plain(t, kv, slow, repositories, fmt.Sprintf("%s%04d", objects, i))
		}
	}
	allEncryptedBy(t, kv, second, objects, work)
	if found := keys(t, home); !slices.Contains(found, first) {
		t.Errorf("keys %q: the old one was taken out although history that needs it is kept", found)
	}
	for i := range 10 {
		plain(t, kv, slow, repositories, fmt.Sprintf("%s%04d", objects, i))
	}
}

// TestNoConcurrentChangeIsLost increments numbers in rows that are being re-encrypted all the time.
func TestNoConcurrentChangeIsLost(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		const counters, each = 8, 40
		home := newFolder(t)
		ensure(t, home)
		encrypter := open(t, home)
		for i := range counters {
			putEncrypted(t, kv, encrypter, encryption.WorkResource, work+strconv.Itoa(i), "0")
		}
		times := quick
		times.History = time.Hour // A counter that has read a row may be slow to decrypt it; its key is kept so long.
		lead(t, kv, encrypter, times)
		group, ctx := errgroup.WithContext(t.Context())
		for i := range counters {
			group.Go(func() error { return count(ctx, kv, encrypter, work+strconv.Itoa(i), each) })
		}
		for range 5 {
			encryptedBy(t, encrypter, rotate(t, home))
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		allEncryptedBy(t, kv, keys(t, home)[0], work)
		for i := range counters {
			if got := plain(t, kv, encrypter, encryption.WorkResource, work+strconv.Itoa(i)); got != strconv.Itoa(each) {
				t.Errorf("counter %d is at %s, want %d", i, got, each)
			}
		}
	})
}

// count increments the number in a row by compare-and-swap.
func count(ctx context.Context, kv clientv3.KV, encrypter *encryption.Encrypter, key string, to int) error {
	for done := 0; done < to; {
		answer, err := kv.Get(ctx, key)
		if err != nil {
			return err
		}
		opened, _, err := encrypter.Work().TransformFromStorage(ctx, answer.Kvs[0].Value, value.DefaultContext(key))
		if err != nil {
			return err
		}
		number, err := strconv.Atoi(string(opened))
		if err != nil {
			return err
		}
		encrypted, err := encrypter.Work().TransformToStorage(ctx, []byte(strconv.Itoa(number+1)), value.DefaultContext(key))
		if err != nil {
			return err
		}
		written, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", answer.Kvs[0].ModRevision)).
			Then(clientv3.OpPut(key, string(encrypted))).Commit()
		if err != nil {
			return err
		}
		if written.Succeeded {
			done++
		}
	}
	return nil
}

func TestLeaderThatDiesIsFollowed(t *testing.T) {
	kv, home := bolttest.NewKV(t), newSecret()
	ensure(t, home)
	encrypter := open(t, home)
	fill(t, kv, encrypter, 30)
	second := rotate(t, home)
	for done := 0; done < 60; {
		stop := lead(t, kv, encrypter, quick)
		// A leader lasts until it has got a little further than the one before.
		testkit.Eventually(t, "progress", func() error {
			before := done
			if done = countEncryptedBy(stored(t, kv, "/registry"), second); done == before {
				return fmt.Errorf("%d rows are encrypted with the new key", done)
			}
			return nil
		})
		stop()
	}
	for i := range 30 {
		plain(t, kv, encrypter, repositories, fmt.Sprintf("%s%04d", objects, i))
	}
}

// countEncryptedBy counts the rows that are encrypted by a key.
func countEncryptedBy(by []string, key string) (n int) {
	for _, each := range by {
		if strings.Contains(each, key) {
			n++
		}
	}
	return n
}

func TestRowThatCannotBeOpenedKeepsTheOldKeys(t *testing.T) {
	kv, home := bolttest.NewKV(t), newFolder(t)
	ensure(t, home)
	encrypter := open(t, home)
	fill(t, kv, encrypter, 5)
	putRaw(t, kv, work+"lost", []byte("k8s:enc:secretbox:v1:0-lost:gibberish"))
	second := rotate(t, home)
	lead(t, kv, encrypter, quick)
	allEncryptedBy(t, kv, second, objects)
	testkit.Eventually(t, "the other rows", func() error {
		if n := countEncryptedBy(stored(t, kv, work), second); n != 5 {
			return fmt.Errorf("%d rows are encrypted with the new key", n)
		}
		return nil
	})
	if by := stored(t, kv, work+"lost"); !slices.Equal(by, []string{`secretbox "0-lost"`}) {
		t.Errorf("the unreadable row is encrypted with %q", by)
	}
	if found := keys(t, home); len(found) != 2 {
		t.Errorf("keys %q, want both", found)
	}
}

func TestLeasesAreKept(t *testing.T) {
	client := bolttest.NewClient(t)
	lease, err := client.Grant(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	putRaw(t, client.KV, objects+"leased", []byte("{}"), clientv3.WithLease(lease.ID))
	home := newFolder(t)
	ensure(t, home)
	lead(t, client.KV, open(t, home), quick)
	allEncryptedBy(t, client.KV, keys(t, home)[0], objects)
	if _, err := client.Revoke(t.Context(), lease.ID); err != nil {
		t.Fatal(err)
	}
	if left := stored(t, client.KV, objects); len(left) != 0 {
		t.Errorf("%d rows outlive their lease", len(left))
	}
}
