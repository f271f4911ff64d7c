// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// fill makes enough widgets for three pages of 500.
func fill(server *apiServer) (names []string) {
	for i := range 1010 {
		names = append(names, fmt.Sprintf("w%05d", i))
		server.happen("ADDED", names[i])
	}
	return names
}

func TestListReadsPageByPage(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		want := fill(server)
		var got []string
		passed := map[string]int{}
		version, err := watch.NewLister(reader).List(t.Context(), shopWidgets, func(object *unstructured.Unstructured, version string) error {
			got = append(got, object.GetName())
			passed[version]++
			return nil
		})
		if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %d objects, %v; want %d in order", len(got), err, len(want))
		}
		if want := fmt.Sprint(100 + len(want)); version != want {
			t.Errorf("resourceVersion: got %s, want %s", version, want)
		}
		if passed[version] != len(want) {
			t.Errorf("resourceVersions with the objects: got %v, want %s with each", passed, version)
		}
		if requests := server.seen(); len(requests) != 3 || !strings.Contains(requests[0], "/namespaces/shop/widgets?limit=500") {
			t.Errorf("requests: got %v, want three of 500 objects", requests)
		}
	})
}

// What changes behind the reader's back after the history was compacted is in the watch; the rest must be in the list.
func TestListContinuesAtTheCurrentVersionWhenItsOwnExpires(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		names := fill(server)
		seen, passed := map[string]int{}, map[string]bool{}
		version, err := watch.NewLister(reader).List(t.Context(), shopWidgets, func(object *unstructured.Unstructured, version string) error {
			passed[version] = true
			if len(seen) == 10 {
				server.happen("DELETED", names[0])
				server.happen("ADDED", "w99999")
				server.compact(expired(""))
			}
			seen[object.GetName()]++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(100 + len(names)); version != want {
			t.Errorf("resourceVersion: got %s, want that of the first page, %s", version, want)
		}
		if len(passed) != 1 || !passed[version] {
			t.Errorf("resourceVersions with the objects: got %v, want only %s", passed, version)
		}
		for _, name := range append(names, "w99999") {
			if seen[name] != 1 {
				t.Errorf("%s came %d times, want once", name, seen[name])
			}
		}
	})
}

func TestListErrors(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		fill(server)
		lister := watch.NewLister(reader)
		stop := errors.New("enough")
		_, err := lister.List(t.Context(), shopWidgets, func(*unstructured.Unstructured, string) error { return stop })
		if !errors.Is(err, stop) || err.Error() != stop.Error() {
			t.Errorf("got %v, want the caller's error as it is", err)
		}
		server.refuse(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))
		_, err = lister.List(t.Context(), shopWidgets, func(*unstructured.Unstructured, string) error { return nil })
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "listing widgets.example.com/v1 in shop") {
			t.Errorf("got %v, want Forbidden", err)
		}
		server.refuse(expired("0:w00001"))
		_, err = lister.List(t.Context(), shopWidgets, func(*unstructured.Unstructured, string) error { return nil })
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("got %v, want the expired resource", err)
		}
	})
}
