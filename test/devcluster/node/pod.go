// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// retryInterval is the delay before the node retries the preparation of a Pod, or restarts its container.
	// A kubelet waits ten seconds or more.
	retryInterval = 500 * time.Millisecond
	// deleteLimit is the timeout of the deletion of the Pod's object.
	deleteLimit = 10 * time.Second
)

// pod is a Pod of this node.
type pod struct {
	node    *Node
	object  *corev1.Pod
	address netip.Addr
	volumes *volumes
	// network is guarded by the node's mutex.
	network *podNetwork
	// log is the path of the container's output.
	log string

	// kill ends the Pod immediately; deleted is closed when it must stop within grace.
	kill    context.CancelFunc
	once    sync.Once
	deleted chan struct{}
	grace   time.Duration
	// changed signals that volumes may have to be written again.
	changed chan struct{}
}

func newPod(n *Node, object *corev1.Pod, address netip.Addr, kill context.CancelFunc) *pod {
	return &pod{
		node: n, object: object, address: address, kill: kill,
		volumes: &volumes{
			client: n.client, pod: object,
			folder: filepath.Join(n.options.Dir, "pods", string(object.UID)), claims: filepath.Join(n.options.Dir, "claims"),
		},
		log:     filepath.Join(n.options.Dir, "logs", object.Name+".log"),
		deleted: make(chan struct{}),
		changed: make(chan struct{}, 1),
	}
}

// end stops the Pod.
func (p *pod) end(graceSeconds int64) {
	p.once.Do(func() {
		p.grace = time.Duration(graceSeconds) * time.Second
		close(p.deleted)
	})
}

// checkVolumes makes the Pod check its volumes.
func (p *pod) checkVolumes() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// run manages the Pod until its end. The object is deleted last: while it exists, parts of the Pod may run.
func (p *pod) run(ctx context.Context) {
	defer p.kill()
	if err := p.runContainers(ctx); err != nil && ctx.Err() == nil {
		p.logf("%v", err)
	}
	select {
	case <-p.deleted:
	case <-ctx.Done():
	}
	p.cleanUp()
	if ctx.Err() == nil {
		p.deleteObject(ctx)
	}
}

// runContainers prepares the Pod and runs its container until it must not be restarted.
func (p *pod) runContainers(ctx context.Context) error {
	if len(p.object.Spec.Containers) != 1 || len(p.object.Spec.InitContainers) > 0 || p.object.Spec.HostNetwork {
		return errors.New("only Pods with one container and without hostNetwork are supported")
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	refreshing, stop := context.WithCancel(ctx)
	defer stop()
	var refresher sync.WaitGroup
	defer refresher.Wait()
	defer stop()
	refresher.Go(func() { p.refresh(refreshing) })
	for restarts := int32(0); ; restarts++ {
		end := p.runContainer(ctx, restarts)
		if ctx.Err() != nil || p.isDeleted() || !p.mustRestart(end) {
			return nil
		}
		p.pause(ctx)
	}
}

// mustRestart reports whether the container must be restarted.
func (p *pod) mustRestart(end *corev1.ContainerStateTerminated) bool {
	switch p.object.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return end.ExitCode != 0
	}
	return true
}

// prepare binds the Pod to the node, and creates what its container needs.
func (p *pod) prepare(ctx context.Context) error {
	if err := p.bind(ctx); err != nil {
		return err
	}
	made, err := newPodNetwork(p.node.outside()...)
	if err != nil {
		return err
	}
	p.node.mutex.Lock()
	p.network = made
	p.node.mutex.Unlock()
	if err := p.node.proxy.serve(ctx, made, p.node.fixed); err != nil {
		return err
	}
	p.object.Status.PodIP = p.address.String()
	return p.retry(ctx, "ContainerCreating", func() error { return p.volumes.prepare(ctx) })
}

// bind sets the Pod's node, as a scheduler does.
func (p *pod) bind(ctx context.Context) error {
	if p.object.Spec.NodeName != "" {
		return nil
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.object.Name, Namespace: p.object.Namespace, UID: p.object.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: name},
	}
	if err := p.node.client.CoreV1().Pods(p.object.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("failed to bind the Pod: %w", err)
	}
	p.object.Spec.NodeName = name
	return nil
}

// retry repeats try until it succeeds or the Pod must stop, and reports the reason in the Pod's status.
func (p *pod) retry(ctx context.Context, reason string, try func() error) error {
	var last string
	return wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		if p.isDeleted() {
			return false, errors.New("the Pod was deleted before it could start")
		}
		err := try()
		if err != nil && err.Error() != last {
			last = err.Error()
			p.logf("%s", last)
			p.report(ctx, containerStatus{waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: last}})
		}
		return err == nil, nil
	})
}

// refresh keeps the volumes up to date.
func (p *pod) refresh(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
			if err := p.volumes.refresh(ctx); err != nil && ctx.Err() == nil {
				p.logf("%v", err)
			}
		}
	}
}

func (p *pod) isDeleted() bool {
	select {
	case <-p.deleted:
		return true
	default:
		return false
	}
}

// pause waits before the container is restarted.
func (p *pod) pause(ctx context.Context) {
	timer := time.NewTimer(retryInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.deleted:
	case <-ctx.Done():
	}
}

// cleanUp removes the Pod's files and network.
func (p *pod) cleanUp() {
	p.node.mutex.Lock()
	made := p.network
	p.network = nil
	p.node.mutex.Unlock()
	if made != nil {
		made.close()
	}
	if err := os.RemoveAll(p.volumes.folder); err != nil {
		p.logf("%v", err)
	}
}

// deleteObject deletes the Pod's object, and repeats that until it succeeds or ctx ends. An attempt that has begun is completed.
func (p *pod) deleteObject(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteLimit)
		defer cancel()
		err := p.node.client.CoreV1().Pods(p.object.Namespace).Delete(deleting, p.object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.object.UID},
		})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // A conflict is about another Pod of that name.
			return true, nil
		}
		p.logf("failed to delete the Pod: %v", err)
		return false, nil
	})
}
