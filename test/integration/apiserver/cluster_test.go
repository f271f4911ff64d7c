// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/devcluster"
)

func testNamespaceDeletion(t *testing.T, s *stage) {
	namespace := s.namespace(t, "doomed")
	for _, manifest := range []string{repositoryIn(namespace), destinationIn(namespace), ruleIn(namespace), catalogIn(namespace, namespace)} {
		s.apply(t, manifest)
	}
	s.kubectl(t, "wait", "--for=create", "gds/dest", "-n", namespace, "--timeout=180s")
	s.kubectl(t, "delete", "namespace", namespace, "--timeout=180s")
	// A record that was written in the same moment goes with the garbage collector.
	eventually(t, "objects go with their namespace", func(context.Context) error {
		if out := s.kubectl(t, "get", "slipstream", "-A", "-o", "jsonpath={.items[*].metadata.namespace}"); strings.Contains(out, namespace) {
			return fmt.Errorf("there are some in %s", out)
		}
		return nil
	})
}

func testGarbageCollection(t *testing.T, s *stage) {
	namespace := s.namespace(t, "garbage")
	s.apply(t, repositoryIn(namespace))
	s.apply(t, destinationIn(namespace))
	s.kubectl(t, "wait", "--for=create", "gds/dest", "-n", namespace, "--timeout=180s")
	s.kubectl(t, "delete", "gd", "dest", "-n", namespace)
	s.kubectl(t, "wait", "--for=delete", "gds/dest", "-n", namespace, "--timeout=180s")
}

// revision is the resourceVersion of the whole store.
func (s *stage) revision(t *testing.T) int64 {
	t.Helper()
	list, err := s.client.Resource(resource("gitrepoconfigs")).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func testRestart(t *testing.T, s *stage) {
	namespace := s.namespace(t, "restart")
	s.apply(t, repositoryIn(namespace))
	uid := s.jsonpath(t, "{.metadata.uid}", "grc", "repo", "-n", namespace)
	before := s.revision(t)
	s.restart(t, syscall.SIGTERM)
	if got := s.jsonpath(t, "{.metadata.uid}", "grc", "repo", "-n", namespace); got != uid {
		t.Errorf("uid = %s after a restart, want %s", got, uid)
	}
	if after := s.revision(t); after < before {
		t.Errorf("revision = %d after a restart, want %d or more", after, before)
	}
}

func testCrash(t *testing.T, s *stage) {
	namespace := s.namespace(t, "crash")
	s.apply(t, repositoryIn(namespace))
	before := s.revision(t)
	s.restart(t, syscall.SIGKILL)
	s.kubectl(t, "get", "grc", "repo", "-n", namespace)
	if after := s.revision(t); after < before {
		t.Errorf("revision = %d after a crash, want %d or more", after, before)
	}
	// The store's lock makes the successor the same leader: it need not wait for its own Lease to run out.
	s.apply(t, destinationIn(namespace))
	s.kubectl(t, "wait", "--for=create", "gds/dest", "-n", namespace, "--timeout=180s")
}

// restart stops the server with a signal and starts it on the same data.
func (s *stage) restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Namespaces are deleted by asking every API for what is in them: one that is registered and does not answer holds the deletion
// up until it does.
func testNamespaceWaits(t *testing.T, s *stage) {
	namespace := s.namespace(t, "held")
	s.apply(t, repositoryIn(namespace))
	s.deleteWithoutServer(t, namespace, syscall.SIGKILL)
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "wait", "--for=delete", "namespace/"+namespace, "--timeout=180s")
}

// deleteWithoutServer stops the server and deletes a namespace, which waits for the API.
func (s *stage) deleteWithoutServer(t *testing.T, namespace string, signal syscall.Signal) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	// A change of the APIService makes the aggregator look at once.
	s.kubectl(t, "annotate", "apiservice", devcluster.APIServiceName, "deleted="+namespace, "--overwrite")
	s.kubectl(t, "wait", "apiservice/"+devcluster.APIServiceName, "--for=condition=Available=false", "--timeout=180s")
	s.kubectl(t, "delete", "namespace", namespace, "--wait=false")
	eventually(t, "the namespace to wait for our API", func(ctx context.Context) error {
		out, err := s.admin.Run(ctx, "get", "namespace", namespace, "-o", "jsonpath={.status.conditions[?(@.status=='True')].message}")
		if err != nil {
			return err
		}
		if !strings.Contains(out, "configbutler.ai") {
			return fmt.Errorf("conditions: %s", out)
		}
		return nil
	})
	if err := s.ControllerManagerHealthy(t.Context()); err != nil {
		t.Errorf("with the server stopped: %v", err)
	}
}

func testBreakGlass(t *testing.T, s *stage) {
	namespace := s.namespace(t, "stuck")
	s.apply(t, repositoryIn(namespace))
	s.deleteWithoutServer(t, namespace, syscall.SIGTERM)
	s.kubectl(t, "delete", "apiservice", devcluster.APIServiceName)
	eventually(t, "the namespace to go", func(ctx context.Context) error {
		out, err := s.admin.Run(ctx, "get", "namespace", namespace, "--ignore-not-found", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What the server held of that namespace is still there, and collected by nobody: its namespace is gone.
	contains(t, s.kubectl(t, "get", "grc", "-A", "-o", "jsonpath={.items[*].metadata.namespace}"), namespace)
}
