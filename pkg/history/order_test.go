// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// counter counts the rows that are read.
type counter struct {
	clientv3.KV
	rows atomic.Int64
}

func (c *counter) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := c.KV.Get(ctx, key, options...)
	if err == nil {
		c.rows.Add(int64(len(response.Kvs)))
	}
	return response, err
}

func (c *counter) Txn(ctx context.Context) clientv3.Txn { return countedTxn{c.KV.Txn(ctx), c} }

// countedTxn is a transaction without conditions.
type countedTxn struct {
	clientv3.Txn
	counter *counter
}

func (t countedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	return countedTxn{t.Txn.Then(ops...), t.counter}
}

func (t countedTxn) Commit() (*clientv3.TxnResponse, error) {
	response, err := t.Txn.Commit()
	if err != nil {
		return nil, err
	}
	for _, each := range response.Responses {
		t.counter.rows.Add(int64(len(each.GetResponseRange().GetKvs())))
	}
	return response, nil
}

// page reads a page.
func (s *served) page(namespace string, options *internalversion.ListOptions) *configbutler.ChangeList {
	s.Helper()
	obj, err := s.endpoint.List(s.in(namespace), options)
	s.must(err)
	list := obj.(*configbutler.ChangeList)
	if list.Items == nil {
		s.Errorf("the items of %+v are null, want a list", options)
	}
	return list
}

// orderOf is how Changes are ordered.
func orderOf(change *configbutler.Change) string { return change.Name + "/" + change.Namespace }

// all returns the order of all Changes of a list without a limit.
func (s *served) all() []string {
	s.Helper()
	var all []string
	for _, change := range s.page("", &internalversion.ListOptions{}).Items {
		all = append(all, orderOf(&change))
	}
	return all
}

// hiddenResource is a type of objects that some readers may not get.
const hiddenResource = "secrets"

// restrict hides the Changes of a type from the reader.
func (s *served) restrict() {
	s.review = func(resource string) bool { return resource != hiddenResource }
}

// edit records some Changes, of times that are partly equal, and sometimes deletes old ones.
func (s *served) edit(random *rand.Rand, changes int) {
	s.Helper()
	namespaces := []string{"a", "a-b", "a0", "b", "shop", fmt.Sprint("preview-", random.IntN(100))}
	var push []v1alpha1.ChangeSpec
	for range changes {
		if random.IntN(3) == 0 {
			s.clock.Step(time.Duration(random.IntN(5)) * time.Millisecond)
		}
		of := named(namespaces[random.IntN(len(namespaces))], []string{"web", "api"}[random.IntN(2)])
		version := fmt.Sprint(random.Uint32())
		change := s.change(of, fmt.Sprintf("%040x", random.Uint64()), version)
		if random.IntN(2) == 0 {
			change.Object.Resource = hiddenResource
		}
		push = append(push, change)
	}
	s.record(s.History, fmt.Sprint(random.Uint64()), push...)
	if random.IntN(4) == 0 {
		limits := history.Limits{Age: time.Hour, Total: 60 + random.IntN(60), PerObject: 1000}
		s.must(history.Prune(s.History, s.Context(), limits, s.clock.Now()))
	}
}

// TestPagesAreInTheOrderOfTime reads pages of random lengths while Changes are recorded and expire, as readers that may see all Changes or
// half of them. What existed throughout is listed once, in order, and a watch from the first page has the rest.
func TestPagesAreInTheOrderOfTime(t *testing.T) {
	for seed := range uint64(4) {
		for _, selector := range []string{"", "object.kind=Deployment", "operation!=Create"} {
			t.Run(fmt.Sprint(selector, seed), func(t *testing.T) {
				s, random := newServed(t), rand.New(rand.NewPCG(seed, 0))
				if seed%2 == 0 {
					s.restrict()
				}
				s.edit(random, 100)
				throughout := sets.New(s.all()...)
				options := &internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(selector)}
				listed, first := sets.New[string](), ""
				for last := ""; first == "" || options.Continue != ""; {
					options.Limit = int64(1 + random.IntN(30))
					page := s.page("", options)
					for _, change := range page.Items {
						if orderOf(&change) <= last {
							t.Errorf("%s after %s", orderOf(&change), last)
						}
						if !s.review(change.Spec.Object.Resource) {
							t.Errorf("%s is of a type that the reader may not get", orderOf(&change))
						}
						last = orderOf(&change)
						listed.Insert(last)
					}
					if options.Continue = page.Continue; options.Continue != "" && len(page.Items) != int(options.Limit) {
						t.Errorf("a page of %d and not the last one, want %d", len(page.Items), options.Limit)
					}
					if first == "" {
						first = page.ResourceVersion
					}
					if page.ResourceVersion != first {
						t.Errorf("a continued page has resourceVersion %s, want %s of the first one", page.ResourceVersion, first)
					}
					s.edit(random, random.IntN(20))
					throughout = throughout.Intersection(sets.New(s.all()...))
				}
				if missing := throughout.Difference(listed); len(missing) > 0 {
					t.Errorf("not listed: %v", missing.UnsortedList())
				}
				s.follow(listed, first)
			})
		}
	}
}

// follow applies the events since a resourceVersion to what was listed, and compares the result with all Changes.
func (s *served) follow(listed sets.Set[string], version string) {
	s.Helper()
	s.clock.Step(time.Second)
	s.record(s.History, "end", s.change(named("shop", "end"), "e", "1"))
	ctx, cancel := context.WithCancel(s.in(""))
	defer cancel()
	events, err := s.endpoint.Watch(ctx, &internalversion.ListOptions{ResourceVersion: version, Watch: true})
	s.must(err)
	defer events.Stop()
	for event := range events.ResultChan() {
		change, ok := event.Object.(*configbutler.Change)
		if !ok {
			s.Fatalf("event %v", event)
		}
		if event.Type == watch.Deleted {
			listed.Delete(orderOf(change))
		} else {
			listed.Insert(orderOf(change))
		}
		if change.Spec.Object.Name == "end" {
			break
		}
	}
	all := s.all()
	if !slices.IsSorted(all) {
		s.Errorf("not in order: %v", all)
	}
	var again []string // Namespaces have been added since.
	for options := (&internalversion.ListOptions{Limit: 7}); len(again) == 0 || options.Continue != ""; {
		page := s.page("", options)
		for _, change := range page.Items {
			again = append(again, orderOf(&change))
		}
		options.Continue = page.Continue
	}
	if !slices.Equal(again, all) {
		s.Errorf("pages have %v, want %v", again, all)
	}
	if want := sets.New(all...); !listed.Equal(want) {
		s.Errorf("too many: %v, missing: %v", listed.Difference(want).UnsortedList(), want.Difference(listed).UnsortedList())
	}
}

// TestChangesWhileAPageIsFilled records a Change while a page is filled with those that the user may see: a watch from it has the Change.
func TestChangesWhileAPageIsFilled(t *testing.T) {
	s := newServed(t)
	for i, resource := range []string{"deployments", "secrets", "secrets"} {
		s.clock.Step(time.Second)
		change := s.change(named("shop", "web"), fmt.Sprint(i), "1")
		change.Object.Resource = resource
		s.record(s.History, fmt.Sprint(i), change)
	}
	before := s.page("", &internalversion.ListOptions{}).ResourceVersion
	recorded := false
	s.review = func(resource string) bool {
		if resource == "secrets" && !recorded {
			recorded = true
			s.clock.Step(time.Second)
			s.record(s.History, "late", s.change(named("shop", "late"), "late", "1"))
		}
		return resource != "secrets"
	}
	page := s.page("", &internalversion.ListOptions{Limit: 1})
	if len(page.Items) != 1 || page.Items[0].Spec.Commits[0].SHA != "0" || page.ResourceVersion != before {
		t.Errorf("%d Changes at %s, want the first one at %s", len(page.Items), page.ResourceVersion, before)
	}
}

// TestNewestPageReadsLittle checks how many rows the pages of many Changes read, besides the Changes in them. A reader who may see fewer than
// a page has causes each row to be read about once.
func TestNewestPageReadsLittle(t *testing.T) {
	const namespaces, perNamespace, limit = 30, 100, 20
	s := newServed(t)
	visible := 0
	for i := range perNamespace {
		s.clock.Step(time.Second)
		var changes []v1alpha1.ChangeSpec
		for n := range namespaces {
			change := s.change(named(fmt.Sprint("team-", n), "web"), fmt.Sprintf("%040d", i), fmt.Sprint(i))
			if n != 7 || i%6 != 0 {
				change.Object.Resource = hiddenResource
			} else {
				visible++
			}
			changes = append(changes, change)
		}
		s.record(s.History, fmt.Sprint(i), changes...)
	}
	options := &internalversion.ListOptions{Limit: limit}
	s.page("", options) // It finds the namespaces.
	for number := range 3 {
		before := s.read.rows.Load()
		page := s.page("", options)
		if read := s.read.rows.Load() - before; read < limit || read > 10*namespaces {
			t.Errorf("page %d reads %d rows of %d", number, read, namespaces*perNamespace)
		}
		options.Continue = page.Continue
	}
	s.restrict()
	for selector, most := range map[string]int64{
		"":                       namespaces*perNamespace + 10*namespaces,
		"object.kind=Deployment": 10 * namespaces,
	} {
		before := s.read.rows.Load()
		page := s.page("", &internalversion.ListOptions{Limit: limit, FieldSelector: fields.ParseSelectorOrDie(selector)})
		if len(page.Items) != visible || visible >= limit || page.Continue != "" {
			t.Errorf("selected %q: %d Changes and the token %q, want all %d", selector, len(page.Items), page.Continue, visible)
		}
		if read := s.read.rows.Load() - before; read == 0 || read > most {
			t.Errorf("selected %q: %d rows read for a reader of %d Changes, want at most %d", selector, read, visible, most)
		}
	}
}

// TestListsWithoutIndex lists Changes that are not in the index, as after the work store was lost.
func TestListsWithoutIndex(t *testing.T) {
	s := newServed(t)
	for i := range 4 {
		s.clock.Step(time.Second)
		s.record(s.History, fmt.Sprint(i), s.change(named([]string{"shop", "bank"}[i%2], "web"), fmt.Sprint(i), "1"))
	}
	rows := table.New(s.kv, "/test-work").Table(history.TableName)
	s.must(rows.DeleteRange(t.Context(), "blocks/", "blocks0"))
	for _, limit := range []int64{0, 1, 3} {
		if got := s.list("", "", limit); got != "3 2 1 0" {
			t.Errorf("with limit %d: %s", limit, got)
		}
		s.page("nothing", &internalversion.ListOptions{Limit: limit})
	}
}

// TestContinueTokens lists with the tokens of upstream's storage, and invalid ones, as a reader who may not see all Changes.
func TestContinueTokens(t *testing.T) {
	s := newServed(t)
	for i := range 4 {
		s.clock.Step(time.Second)
		hidden := s.change(named([]string{"shop", "bank"}[i%2], "hidden"), fmt.Sprint(10+i), "1")
		hidden.Object.Resource = hiddenResource
		s.record(s.History, fmt.Sprint(i), s.change(named([]string{"shop", "bank"}[i%2], "web"), fmt.Sprint(i), "1"))
		s.clock.Step(time.Second)
		s.record(s.History, fmt.Sprint(10+i), hidden)
	}
	s.restrict()
	version := s.page("", &internalversion.ListOptions{}).ResourceVersion
	s.clock.Step(time.Second)
	s.record(s.History, "4", s.change(named("bank", "web"), "4", "1"))
	for name, options := range map[string]*internalversion.ListOptions{
		"exact":             {Limit: 1, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"exact, by default": {Limit: 1, ResourceVersion: version},
	} {
		var commits []string
		for more := true; more; more = options.Continue != "" {
			page := s.page("", options)
			commits = append(commits, page.Items[0].Spec.Commits[0].SHA)
			if page.ResourceVersion != version {
				t.Errorf("%s: a page of resourceVersion %s, want %s", name, page.ResourceVersion, version)
			}
			*options = internalversion.ListOptions{Limit: 1, Continue: page.Continue}
		}
		if got := strings.Join(commits, " "); got != "3 1 2 0" {
			t.Errorf("%s: %s, want those of the resourceVersion by namespace", name, got)
		}
	}
	token := func(key string, revision int64) string {
		token, err := storage.EncodeContinue(key, "/", revision)
		s.must(err)
		return token
	}
	for name, test := range map[string]struct {
		options internalversion.ListOptions
		is      func(error) bool
	}{
		"no namespace": {internalversion.ListOptions{Continue: token("/@fe5de6d34b76-3aa1b51ab792", 7)}, apierrors.IsBadRequest},
		"no version":   {internalversion.ListOptions{Continue: token("/@fe5de6d34b76-3aa1b51ab792/shop", -1)}, apierrors.IsBadRequest},
		"future token": {
			internalversion.ListOptions{Continue: token("/@fe5de6d34b76-3aa1b51ab792/shop", 1000000)}, storage.IsTooLargeResourceVersion,
		},
		"future": {
			internalversion.ListOptions{ResourceVersion: "1000000", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
			storage.IsTooLargeResourceVersion,
		},
	} {
		test.options.Limit = 1
		if _, err := s.endpoint.List(s.in(""), &test.options); !test.is(err) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
