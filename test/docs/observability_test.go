// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/tracetest"
)

const observabilityPage = "docs/observability.md"

// TestObservability follows the page, in a cluster whose server exports all traces.
func TestObservability(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	build(t)
	folder := t.TempDir()
	log := filepath.Join(folder, "collector.log")
	config := filepath.Join(folder, "tracing.yaml")
	tracetest.New(t, log).Configure(t, config, 1_000_000)
	cluster := clustertest.Start(t, devcluster.Options{
		Server: true, Audit: true, Admission: true, ServerArgs: []string{"--tracing-config-file=" + config, longestWait},
	})
	r := newReader(t, ownServer(cluster))
	r.setenv(t, cluster.Environ()...)
	r.setenv(t, "GIT_PASSWORD=any", "COLLECTOR_LOG="+log, "PATH="+strings.Join([]string{
		filepath.Dir(cluster.Env(devcluster.EnvKubectl)), filepath.Join(root, "bin"), "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin",
	}, ":"))
	r.follow(t, shellBlocks(t, root, observabilityPage))
}
