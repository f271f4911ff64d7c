// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// health is a result of probes: whether a container is ready, or why it must be restarted.
type health struct {
	ready   bool
	failure error
}

// prober probes a container.
type prober struct {
	network   network
	container *corev1.Container
	found     chan<- health
}

// run probes until ctx ends: first with the startup probe, then with the liveness and readiness probes.
func (p *prober) run(ctx context.Context) {
	if err := p.untilStarted(ctx); err != nil {
		p.send(ctx, health{failure: err})
		return
	}
	if p.container.ReadinessProbe == nil {
		p.send(ctx, health{ready: true})
	} else {
		go p.repeat(ctx, p.container.ReadinessProbe, func(err error) bool {
			p.send(ctx, health{ready: err == nil})
			return true
		})
	}
	if p.container.LivenessProbe == nil {
		return
	}
	p.repeat(ctx, p.container.LivenessProbe, func(err error) bool {
		if err != nil {
			p.send(ctx, health{failure: fmt.Errorf("liveness probe: %w", err)})
		}
		return err == nil
	})
}

// untilStarted waits for the startup probe.
func (p *prober) untilStarted(ctx context.Context) (failure error) {
	probe := p.container.StartupProbe
	if probe == nil {
		return nil
	}
	p.repeat(ctx, probe, func(err error) bool {
		if err != nil {
			failure = fmt.Errorf("startup probe: %w", err)
		}
		return false
	})
	return errors.Join(failure, ctx.Err())
}

func (p *prober) send(ctx context.Context, found health) {
	select {
	case p.found <- found:
	case <-ctx.Done():
	}
}

// repeat probes repeatedly and calls decided with each result that reaches the probe's thresholds, until decided returns false.
func (p *prober) repeat(ctx context.Context, probe *corev1.Probe, decided func(error) (goOn bool)) {
	ticker := time.NewTicker(time.Duration(max(probe.PeriodSeconds, 1)) * time.Second)
	defer ticker.Stop()
	var failures, successes int32
	for {
		err := p.probeOnce(ctx, probe)
		if err == nil {
			failures, successes = 0, successes+1
		} else {
			failures, successes = failures+1, 0
		}
		isDecided := failures >= max(probe.FailureThreshold, 1) || successes >= max(probe.SuccessThreshold, 1)
		if isDecided && !decided(err) {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// probeOnce probes once.
func (p *prober) probeOnce(ctx context.Context, probe *corev1.Probe) error {
	if probe.HTTPGet == nil {
		return errors.New("only HTTP probes are supported")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	scheme := "http"
	if probe.HTTPGet.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	address := net.JoinHostPort(loopback, strconv.Itoa(portOf(p.container, probe.HTTPGet.Port)))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+probe.HTTPGet.Path, nil)
	if err != nil {
		return fmt.Errorf("failed to create a probe: %w", err)
	}
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, p.network, address) },
		// A kubelet does not verify certificates either.
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest || response.StatusCode < http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(response.Body, 1000))
		return errors.Join(fmt.Errorf("%s: %s: %s", probe.HTTPGet.Path, response.Status, body), err)
	}
	return nil
}

// portOf returns the number of a container's port.
func portOf(container *corev1.Container, port intstr.IntOrString) int {
	for _, each := range container.Ports {
		if port.Type == intstr.String && each.Name == port.StrVal {
			return int(each.ContainerPort)
		}
	}
	return port.IntValue()
}
