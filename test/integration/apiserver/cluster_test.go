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
	"github.com/configbutler/slipstream/test/testkit"
)

func testNamespaceDeletion(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "doomed")
	for _, manifest := range []string{repositoryIn(namespace), destinationIn(namespace), ruleIn(namespace), catalogIn(namespace, namespace)} {
		s.apply(t, manifest)
	}
	s.kubectl(t, "wait", "--for=create", "gds/dest", "-n", namespace, "--timeout="+deadline.String())
	s.Delete(t, "", "namespace/"+namespace)
	// A record that is written during the deletion is collected by the garbage collector.
	testkit.EventuallyWithin(t, deadline, "objects are deleted with their namespace", func(context.Context) error {
		if out := s.kubectl(t, "get", "slipstream", "-A", "-o", "jsonpath={.items[*].metadata.namespace}"); strings.Contains(out, namespace) {
			return fmt.Errorf("objects in %s", out)
		}
		return nil
	})
}

func testGarbageCollection(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "garbage")
	s.Apply(t, repositoryIn(namespace))
	s.Apply(t, destinationIn(namespace))
	s.kubectl(t, "wait", "--for=create", "gds/dest", "-n", namespace, "--timeout="+deadline.String())
	s.Delete(t, namespace, "gd/dest")
	s.kubectl(t, "wait", "--for=delete", "gds/dest", "-n", namespace, "--timeout="+deadline.String())
}

// revision returns the resourceVersion of the store.
func (s *testCluster) revision(t *testing.T) int64 {
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

func testRestart(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "restart")
	s.Apply(t, repositoryIn(namespace))
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

func testCrash(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "crash")
	s.Apply(t, repositoryIn(namespace))
	before := s.revision(t)
	s.restart(t, syscall.SIGKILL)
	s.kubectl(t, "get", "grc", "repo", "-n", namespace)
	if after := s.revision(t); after < before {
		t.Errorf("revision = %d after a crash, want %d or more", after, before)
	}
	// The lock of the store makes the new process the same leader: it does not wait until its own Lease expires.
	s.Apply(t, destinationIn(namespace))
	s.kubectl(t, "wait", "--for=create", "gds/dest", "-n", namespace, "--timeout="+deadline.String())
}

// restart stops the server with a signal and starts it with the same data.
func (s *testCluster) restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// testNamespaceDeletionWithoutServer deletes a namespace while the server is stopped. The namespace controller waits until every
// registered API responds.
func testNamespaceDeletionWithoutServer(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "held")
	s.Apply(t, repositoryIn(namespace))
	s.deleteWithoutServer(t, namespace, syscall.SIGKILL)
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "wait", "--for=delete", "namespace/"+namespace, "--timeout="+deadline.String())
}

// deleteWithoutServer stops the server and deletes a namespace, whose deletion waits for the API.
func (s *testCluster) deleteWithoutServer(t *testing.T, namespace string, signal syscall.Signal) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	// A change of the APIService triggers an immediate check by the aggregator.
	s.kubectl(t, "annotate", "apiservice", devcluster.APIServiceName, "deleted="+namespace, "--overwrite")
	s.kubectl(t, "wait", "apiservice/"+devcluster.APIServiceName, "--for=condition=Available=false", "--timeout="+deadline.String())
	s.kubectl(t, "delete", "namespace", namespace, "--wait=false")
	testkit.EventuallyWithin(t, deadline, "the namespace to wait for our API", func(ctx context.Context) error {
		out, err := s.Try.Field(ctx, "", "namespace/"+namespace, "{.status.conditions[?(@.status=='True')].message}")
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

func testBreakGlass(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "stuck")
	s.Apply(t, repositoryIn(namespace))
	s.deleteWithoutServer(t, namespace, syscall.SIGTERM)
	s.Delete(t, "", "apiservice/"+devcluster.APIServiceName)
	testkit.EventuallyWithin(t, deadline, "the namespace to be deleted", func(ctx context.Context) error {
		out, err := s.admin.Run(ctx, "get", "namespace", namespace, "--ignore-not-found", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The objects of the namespace remain in the store. The garbage collector does not collect them, because the namespace is deleted.
	contains(t, s.kubectl(t, "get", "grc", "-A", "-o", "jsonpath={.items[*].metadata.namespace}"), namespace)
}
