// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/devcluster/process"
)

const (
	// readyLimit is the timeout for a part to become ready. It allows for a machine that compiles at the same time.
	readyLimit = 5 * time.Minute
	// readyInterval is the interval of the readiness checks of a starting part.
	readyInterval = 50 * time.Millisecond
	// probeLimit is the timeout of a readiness check.
	probeLimit = 30 * time.Second
	// logEndSize is the size of the shown end of a log, in bytes.
	logEndSize = 6000
	// raceMark is in each report of the race detector, and raceBorder is before and after it.
	raceMark   = "WARNING: DATA RACE"
	raceBorder = "==================\n"
)

// part is one process of a cluster, with its readiness check.
type part struct {
	spec  process.Spec
	ready func(ctx context.Context) error
}

// startPart starts a part, adds it to the state, and waits until it is ready. The caller holds the mutex.
func (c *Cluster) startPart(ctx context.Context, p part) error {
	return c.reporter.Step("starting "+p.spec.Name, func() error {
		if c.portsLock != nil {
			p.spec.Held = c.portsLock.File()
		}
		running, err := process.Start(p.spec)
		if err != nil {
			return err
		}
		c.state.Processes = append(c.state.Processes, running)
		if err := c.state.write(c.files.state()); err != nil {
			return err
		}
		if err := waitReady(ctx, running, p.ready); err != nil {
			return withLog(err, running.Log)
		}
		return nil
	})
}

// waitReady waits until ready succeeds. It returns an error if the process ends first, or after readyLimit.
func waitReady(ctx context.Context, running process.Process, ready func(ctx context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, probeLimit)
		defer cancel()
		if last = ready(ctx); last == nil {
			return true, nil
		}
		if !running.Alive() {
			return false, fmt.Errorf("%s has ended", running.Name)
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%s did not become ready: %w (last error: %w)", running.Name, err, last)
	}
	return nil
}

// healthy returns a check that a URL responds with 200.
func (c *Cluster) healthy(url string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("failed to create the health check: %w", err)
		}
		response, err := c.client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			body, err := io.ReadAll(io.LimitReader(response.Body, logEndSize))
			return errors.Join(fmt.Errorf("%s returned %s: %s", url, response.Status, body), err)
		}
		return nil
	}
}

// newHealthClient returns a client that all parts admit. Like the probes of a kubelet, it does not verify certificates.
// The clients of the APIs and the tests do.
func newHealthClient(files layout) (*http.Client, error) {
	certificate, err := tls.LoadX509KeyPair(files.certificate(adminCertificate), files.key(adminCertificate))
	if err != nil {
		return nil, fmt.Errorf("failed to read the certificate for health checks: %w", err)
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: true,
			Certificates:       []tls.Certificate{certificate},
		},
		// Idle connections would outlive the check.
		DisableKeepAlives: true,
	}}, nil
}

// withLog adds the end of a log to an error.
func withLog(err error, log string) error {
	content, readErr := os.ReadFile(log)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	end := string(content)
	if len(end) > logEndSize {
		end = end[len(end)-logEndSize:]
		_, end, _ = strings.Cut(end, "\n")
	}
	return fmt.Errorf("%w\nthe end of %s:\n%s", err, log, end)
}

// raceReport returns an error with the first data race that a log reports, if any. A race of upstream does not count.
func raceReport(log string) error {
	content, err := os.ReadFile(log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to read the log for data races: %w", err)
	}
	for report := range strings.SplitSeq(string(content), raceBorder) {
		if strings.Contains(report, raceMark) && !ofUpstream(report) {
			return errors.New(report[:min(len(report), logEndSize)])
		}
	}
	return nil
}

// ofUpstream reports whether a data race is that of SecureServingInfo.Serve in k8s.io/apiserver, which changes the
// configuration after it has started the controller that clones it: tlsConfig sets GetConfigForClient, and
// http2.ConfigureServer sets PreferServerCipherSuites. Only a change of the certificates at that moment shows it. Neither
// matters: a clone is the result of GetConfigForClient, so that its own is never called, and Go ignores the other field.
func ofUpstream(report string) bool {
	const server = "k8s.io/apiserver/pkg/server."
	return strings.Contains(report, "crypto/tls.(*Config).Clone()") &&
		strings.Contains(report, "dynamiccertificates.(*DynamicServingCertificateController).syncCerts()") &&
		(strings.Contains(report, server+"(*SecureServingInfo).tlsConfig()") ||
			strings.Contains(report, "http2.configureServer()") && strings.Contains(report, server+"(*SecureServingInfo).Serve()"))
}
