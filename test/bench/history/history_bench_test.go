// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"crypto/sha1"
	"flag"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit/registrytest"
)

// total is the number of Changes that lists are read among.
var total = flag.Int("changes", 200_000, "number of Changes, at least 1000")

const (
	namespaces = 20
	names      = 100
	pushed     = 100 // Changes in a push
)

// fixture is a history in a store file, served by upstream's storage.
type fixture struct {
	*history.History
	changes rest.Lister
	count   int
	began   time.Time
}

func newFixture(b *testing.B) *fixture {
	b.Helper()
	f := &fixture{began: time.Now().Add(-24 * time.Hour)}
	transformers := history.Transformers(registrytest.Plain{}) // Encryption costs every object the same.
	storage := registrytest.NewStorage(b, transformers, func(config *registry.Config, kv clientv3.KV) {
		rows := table.New(kv, "/bench-work").Table(history.TableName)
		objects := table.New(kv, registrytest.Prefix+"/configbutler.ai", table.WithTransformer(transformers.TransformerForResource(history.Resource)))
		f.History = history.New(history.Config{Changes: objects.Table("changes"), Rows: rows, Namespace: "system", Clock: clock.RealClock{}})
		config.RESTOptions = history.NewRESTOptionsGetter(config.RESTOptions, objects.Table("changes"), rows)
		config.Clock, config.Authorizer = clock.RealClock{}, authorizerfactory.NewAlwaysAllowAuthorizer()
	})
	f.changes = storage.Endpoints["changes"].(rest.Lister)
	return f
}

// push records a push of Changes of many objects.
func (f *fixture) push(b *testing.B) {
	b.Helper()
	tip := hashOf("tip", f.count)
	specs := make([]v1alpha1.ChangeSpec, pushed)
	for i := range specs {
		specs[i] = f.next()
	}
	if err := f.Prepare(b.Context(), tip, specs); err != nil {
		b.Fatal(err)
	}
	if err := f.Record(b.Context(), tip); err != nil {
		b.Fatal(err)
	}
	if err := f.Discard(b.Context(), tip); err != nil {
		b.Fatal(err)
	}
}

// next returns the next Change.
func (f *fixture) next() v1alpha1.ChangeSpec {
	n := f.count
	f.count++
	object := v1alpha1.ChangedObject{
		APIVersion: "apps/v1", Kind: "Deployment", Resource: "deployments", Namespace: fmt.Sprintf("team-%d", n%namespaces),
		Name: fmt.Sprintf("web-%d", n/namespaces%names), UID: "c0ffee00-1111-2222-3333-444455556666",
	}
	sha := hashOf("commit", n)
	return v1alpha1.ChangeSpec{
		Object: object, Operation: v1alpha1.ChangeUpdate, Time: metav1.NewMicroTime(f.began.Add(time.Duration(n) * 10 * time.Millisecond)),
		ResourceVersions: v1alpha1.ChangedVersions{First: fmt.Sprint(100_000 + n), Last: fmt.Sprint(100_000 + n)},
		Author:           &v1alpha1.ChangeAuthor{Username: fmt.Sprintf("user-%d@example.com", n%10), Signal: "Audit"},
		Commits: []v1alpha1.ChangeCommit{{
			DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "platform", Name: "production"}, SHA: sha, Time: metav1.Now(),
			Message: "[UPDATE] apps/v1/deployments " + object.Namespace + "/" + object.Name,
			Path:    "clusters/production/apps/v1/deployments/" + object.Namespace + "/" + object.Name + ".yaml",
			URL:     "https://git.example.com/platform/production/commit/" + sha, BlobBefore: hashOf("before", n), BlobAfter: hashOf("after", n),
		}},
	}
}

func hashOf(kind string, n int) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(fmt.Sprint(kind, n))))
}

// list reads a page.
func (f *fixture) list(b *testing.B, namespace, selector string, limit int64, want int) {
	b.Helper()
	ctx := genericapirequest.WithUser(genericapirequest.WithNamespace(b.Context(), namespace), &user.DefaultInfo{Name: "jane"})
	obj, err := f.changes.List(ctx, &internalversion.ListOptions{Limit: limit, FieldSelector: fields.ParseSelectorOrDie(selector)})
	if err != nil {
		b.Fatal(err)
	}
	if got := len(obj.(*configbutler.ChangeList).Items); got != want {
		b.Fatalf("%d Changes, want %d", got, want)
	}
}

// BenchmarkHistory records Changes until there are many, and lists some of them.
func BenchmarkHistory(b *testing.B) {
	f := newFixture(b)
	b.Run("Record", func(b *testing.B) {
		began := cpu(b)
		for b.Loop() {
			f.push(b)
		}
		b.ReportMetric(float64((cpu(b)-began).Microseconds())/float64(b.N*pushed), "cpu-us/change")
	})
	for f.count < 1000 {
		f.push(b)
	}
	before := heap()
	for f.count < *total {
		f.push(b)
	}
	after := heap()
	b.Run("Memory", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(float64(after-before)/(1<<20), "MiB-more")
		b.ReportMetric(0, "ns/op")
	})
	each := func(name, namespace, selector string, limit int64, want int) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f.list(b, namespace, selector, limit, want)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms")
		})
	}
	each("Newest", "team-3", "", 50, 50)
	each("NewestOfAll", "", "", 250, 250)
	each("OneObject", "team-3", "object.name=web-7", 500, min(500, f.count/namespaces/names))
	each("OneCommit", "team-3", "commit="+hashOf("commit", 503), 500, 1)
}

// cpu returns the CPU time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// heap returns the live heap in bytes.
func heap() int64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}
