// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "embed"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// Labels of Pods whose containers fail, with the value true. Every other Pod is ready as soon as it is scheduled, and the Pod of a Job
// succeeds at once. A label can be in the template of a workload, or be added to a running Pod. The first label is used by a Stage in
// stages.yaml, the second by a Stage of kwok.
const (
	// UnreadyLabel keeps a Pod running and not ready.
	UnreadyLabel = "pod-unready.stage.kwok.x-k8s.io"
	// FailingLabel makes a running Pod fail after a second or two. A Deployment replaces such Pods again and again.
	FailingLabel = "pod-container-running-failed.stage.kwok.x-k8s.io"
)

// podNetwork has the addresses of Pods. It is reserved for benchmarks and is not routed (RFC 2544).
const podNetwork = "198.18.0.0/15"

// kwokModule is the module of kwok and its Stages.
const kwokModule = "sigs.k8s.io/kwok"

// upstreamStages are the Stages of kwok for starting, running and deleting nodes and Pods. None is for heartbeats of nodes, which no
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

// kwok is the program that simulates kubelets, and the files with its Stages.
type kwok struct {
	Program string   `json:"program"`
	Stages  []string `json:"stages"`
}

// findKwok builds kwok and finds its Stages.
func (c *Cluster) findKwok(ctx context.Context, root string) error {
	return c.reporter.Step("preparing kwok (minutes, once)", func() (err error) {
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

// startPods creates two nodes, and starts kube-scheduler and kwok.
func (c *Cluster) startPods(ctx context.Context) error {
	if err := os.WriteFile(c.files.stages(), stagesManifest, 0o600); err != nil {
		return fmt.Errorf("failed to write the Stages of kwok: %w", err)
	}
	if err := c.apply(ctx, nodesManifest); err != nil {
		return fmt.Errorf("failed to create the nodes: %w", err)
	}
	for _, part := range []part{c.scheduler(), c.kwok()} {
		if err := c.startPart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// podFlags returns the flags of kube-apiserver. Without them, a new node would get a taint that a controller removes once the node is
// ready. No such controller runs.
func (c *Cluster) podFlags() []string {
	if !c.state.Options.Pods {
		return nil
	}
	return []string{"--disable-admission-plugins=TaintNodesByCondition"}
}

// scheduler is the kube-scheduler. Like that of the kube-controller-manager, its rate limit is higher than usual.
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

// kwok simulates the kubelets of the nodes. Without a server address it does not listen.
func (c *Cluster) kwok() part {
	spec := c.spec("kwok", c.state.Kwok.Program,
		"--kubeconfig="+c.files.kubeconfig(kwokUser),
		"--config="+strings.Join(c.state.Kwok.Stages, ","),
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--cidr="+podNetwork,
	)
	// Otherwise kwok would also read the configuration of the user.
	spec.Env = []string{"KWOK_WORKDIR=" + string(c.files)}
	return part{spec: spec, ready: c.nodesReady}
}

// nodesReady returns an error unless all nodes are ready.
func (c *Cluster) nodesReady(ctx context.Context) error {
	admin, err := c.adminClient()
	if err != nil {
		return err
	}
	nodes, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("failed to list the nodes: %w", err)
	}
	for i := range nodes.Items {
		if !slices.ContainsFunc(nodes.Items[i].Status.Conditions, isReady) {
			return fmt.Errorf("node %s is not ready", nodes.Items[i].Name)
		}
	}
	return nil
}

func isReady(condition corev1.NodeCondition) bool {
	return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
}
