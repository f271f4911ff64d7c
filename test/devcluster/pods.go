// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "embed"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// Labels of Pods whose containers do not run well, with the value true. Every other Pod is ready as soon as it is scheduled, and
// one of a Job is complete at once. A label may be in the template of a workload, or be added to a Pod that runs. The first is
// that of a Stage in stages.yaml, the second that of a Stage of kwok.
const (
	// UnreadyLabel keeps a Pod running and not ready.
	UnreadyLabel = "pod-unready.stage.kwok.x-k8s.io"
	// FailingLabel has a running Pod fail after a second or two. A Deployment replaces such Pods without end.
	FailingLabel = "pod-container-running-failed.stage.kwok.x-k8s.io"
)

// podNetwork is where Pods have addresses: a network for benchmarks, which leads nowhere (RFC 2544).
const podNetwork = "198.18.0.0/15"

// kwokModule is the module of kwok and its Stages.
const kwokModule = "sigs.k8s.io/kwok"

// upstreamStages are the Stages of kwok that say how nodes and Pods come, run and go. None is for heartbeats of nodes, which no
// controller of the cluster expects.
var upstreamStages = []string{
	"node/fast/node-initialize.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
	"pod/chaos/pod-container-running-failed.yaml",
}

//go:embed nodes.yaml
var nodesManifest string

//go:embed stages.yaml
var stagesManifest []byte

// kwok is the program that stands for kubelets, and the files with its Stages.
type kwok struct {
	Program string   `json:"program"`
	Stages  []string `json:"stages"`
}

// findKwok builds kwok and finds its Stages.
func (c *Cluster) findKwok(ctx context.Context, root string) error {
	return c.reporter.Step("preparing kwok (minutes the first time)", func() (err error) {
		if c.state.Kwok.Program, err = programs.Kwok.Build(ctx, root); err != nil {
			return err
		}
		folder, err := programs.ModuleFolder(ctx, filepath.Join(root, "hack", "kwok"), kwokModule)
		if err != nil {
			return err
		}
		c.state.Kwok.Stages = []string{c.files.stages()}
		for _, stage := range upstreamStages {
			c.state.Kwok.Stages = append(c.state.Kwok.Stages, filepath.Join(folder, "kustomize", "stage", stage))
		}
		return nil
	})
}

// startPods makes two nodes, and starts kube-scheduler and kwok.
func (c *Cluster) startPods(ctx context.Context) error {
	if err := os.WriteFile(c.files.stages(), stagesManifest, 0o600); err != nil {
		return fmt.Errorf("writing the Stages of kwok: %w", err)
	}
	if _, err := c.Kubectl(c.Admin()).Feed(ctx, nodesManifest, "apply", "-f", "-"); err != nil {
		return fmt.Errorf("making the nodes: %w", err)
	}
	for _, part := range []part{c.scheduler(), c.kwok()} {
		if err := c.startPart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// podFlags are those of kube-apiserver. A new node would get a taint that a controller takes away once the node is ready, and no
// such controller runs.
func (c *Cluster) podFlags() []string {
	if !c.state.Options.Pods {
		return nil
	}
	return []string{"--disable-admission-plugins=TaintNodesByCondition"}
}

// scheduler is the kube-scheduler. As with the kube-controller-manager, its rate is not limited to that of a real cluster.
func (c *Cluster) scheduler() part {
	kubeconfig := c.files.kubeconfig(schedulerCertificate)
	return part{
		spec: c.spec("kube-scheduler", c.state.Programs.Scheduler,
			"--bind-address="+loopback,
			fmt.Sprintf("--secure-port=%d", c.state.Ports.Scheduler),
			"--tls-cert-file="+c.files.certificate(schedulerCertificate),
			"--tls-private-key-file="+c.files.key(schedulerCertificate),
			"--kubeconfig="+kubeconfig,
			"--authentication-kubeconfig="+kubeconfig,
			"--authorization-kubeconfig="+kubeconfig,
			"--leader-elect=false",
			"--kube-api-qps=400",
			"--kube-api-burst=800",
		),
		ready: c.healthy("https://" + address(c.state.Ports.Scheduler) + "/readyz"),
	}
}

// kwok stands for the kubelets of the nodes. Without an address of a server it does not listen.
func (c *Cluster) kwok() part {
	spec := c.spec("kwok", c.state.Kwok.Program,
		"--kubeconfig="+c.files.kubeconfig(kwokUser),
		"--config="+strings.Join(c.state.Kwok.Stages, ","),
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--cidr="+podNetwork,
	)
	// It would also read the user's own configuration.
	spec.Env = []string{"KWOK_WORKDIR=" + string(c.files)}
	return part{spec: spec, ready: c.nodesReady}
}

// nodesReady returns an error unless all nodes are ready.
func (c *Cluster) nodesReady(ctx context.Context) error {
	_, err := c.Kubectl(c.Admin()).Run(ctx, "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=2s")
	return err
}
