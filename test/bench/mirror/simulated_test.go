// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/configbutler/slipstream/test/bench/configmaps"
	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/simulated"
)

// simulatedObjects is at most a million: with more, the names are not in the order of the numbers.
var simulatedObjects = flag.Int("simulated", 100_000, "objects of the simulated source, at most 1000000")

const (
	// simulatedNamespaceSize is the number of objects in each namespace of the simulated source.
	simulatedNamespaceSize = 1_000
	simulatedSamples       = 100
	// followInterval is the interval at which a server with many objects is looked at.
	followInterval = 200 * time.Millisecond
)

// BenchmarkSimulated measures the mirror of more objects than an etcd holds: the API server lists and watches ConfigMaps that are only
// simulated. The rest of the control plane, the Git server and the branch are real.
func BenchmarkSimulated(b *testing.B) {
	s, p := newSimulatedCluster(b, *simulatedObjects)
	m := s.newMirror(b, "shop")
	measure := func(name string, run func(*testing.B)) {
		b.Run(fmt.Sprintf("%s/objects=%d", name, p.Size), func(b *testing.B) {
			for b.Loop() {
				run(b)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
	measure("Seed", func(b *testing.B) { simulatedSeed(b, m, p) })
	measure("SecondRun", func(b *testing.B) {
		secondRun(b, m, func(what string, check func(context.Context) error) { m.follow(b, what, check) })
		m.reportRest(b)
	})
	measure("EventToCommit", (&latency{mirror: m, population: p, samples: simulatedSamples}).run)
}

// newSimulatedCluster starts a cluster whose server reaches the API server through a simulated source.
func newSimulatedCluster(b *testing.B, objects int) (*testCluster, *population) {
	b.Helper()
	front := httptest.NewUnstartedServer(nil)
	b.Cleanup(front.Close) // After the cluster has stopped, and with it the watches.
	url := "http://" + front.Listener.Addr().String()
	s := testClusterOf(b, clustertest.Start(b, devcluster.Options{
		ServerProgram: usage.Server(b), ServerArgs: []string{"--kubeconfig=" + kubeconfigOf(b, url)},
	}))
	next, err := simulated.Proxy(serverConfig(b, s))
	if err != nil {
		b.Fatal(err)
	}
	p := newPopulation(nil)
	p.Size, p.NamespaceSize, p.Distinct = objects, simulatedNamespaceSize, true
	front.Config.Handler = simulated.NewSource(objects, func(number int) *corev1.ConfigMap { return p.At(number, 0) }, next)
	front.Start()
	p.Core, err = kubernetes.NewForConfig(&rest.Config{
		Host: url, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	})
	if err != nil {
		b.Fatal(err)
	}
	for number := 0; number < objects; number += simulatedNamespaceSize {
		configmaps.CreateNamespace(b, s.core, p.At(number, 0).Namespace, configmaps.Namespaces())
	}
	s.start(b)
	return s, p
}

// kubeconfigOf writes a kubeconfig without credentials.
func kubeconfigOf(b *testing.B, url string) (path string) {
	b.Helper()
	config := api.NewConfig()
	config.Clusters["source"] = &api.Cluster{Server: url}
	config.Contexts["source"] = &api.Context{Cluster: "source"}
	config.CurrentContext = "source"
	path = filepath.Join(b.TempDir(), "source.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		b.Fatal(err)
	}
	return path
}

// serverConfig returns a client configuration of the server's account. Its permissions are granted when the server is started.
func serverConfig(b *testing.B, s *testCluster) *rest.Config {
	b.Helper()
	user, err := s.User(devcluster.ServerUser, "system:serviceaccounts", "system:serviceaccounts:"+devcluster.ServerNamespace)
	if err != nil {
		b.Fatal(err)
	}
	config, err := user.RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	return config
}

// simulatedSeed measures the time from the creation of the rule until everything is pushed, and what it needs of memory and disk.
func simulatedSeed(b *testing.B, m *mirror, p *population) {
	began := time.Now()
	m.watch(b)
	m.follow(b, "the branch has every object", m.isSettled(p))
	b.ReportMetric(time.Since(began).Seconds(), "seed-s")
	m.reportRest(b)
	data := m.Env(devcluster.EnvDataDir)
	b.ReportMetric(diskMiB(b, filepath.Join(data, "work.db")), "work-db-MiB")
	b.ReportMetric(diskMiB(b, filepath.Join(data, "api.db")), "api-db-MiB")
	b.ReportMetric(diskMiB(b, data), "data-MiB")
	b.ReportMetric(diskMiB(b, m.repository), "repository-MiB")
}

// follow waits until check succeeds, and reports the processor time of the server since its start and the maximum of its memory.
func (m *mirror) follow(b *testing.B, what string, check func(context.Context) error) {
	b.Helper()
	server, anonymous := string(m.server(b)), 0.0
	eventually(b, what, followInterval, func(ctx context.Context) error {
		anonymous = max(anonymous, usage.MiB(b, server, usage.Anonymous))
		return check(ctx)
	})
	b.ReportMetric(usage.CPU(b, server).Seconds(), "cpu-s")
	b.ReportMetric(anonymous, "peak-anon-MiB")
	b.ReportMetric(usage.MiB(b, server, usage.Peak), "peak-MiB")
}

// reportRest reports the memory of the server after a rest.
func (m *mirror) reportRest(b *testing.B) {
	b.Helper()
	pause(b, restLength)
	m.server(b).reportMemory(b)
}

// diskMiB returns the size of a file, or of the files in a folder, in mebibytes.
func diskMiB(b *testing.B, path string) float64 {
	b.Helper()
	var size int64
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return float64(size) / (1 << 20)
}
