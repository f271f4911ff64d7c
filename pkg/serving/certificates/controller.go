// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

// syncTimeout limits one sync, and thereby how long the start waits for a cluster that does not respond.
const syncTimeout = 10 * time.Second

// Config configures a Controller.
type Config struct {
	Source Source
	// Client accesses the objects that register the server.
	Client dynamic.Interface
	// Watcher watches them. Without it they are read every few seconds.
	Watcher metadata.Interface
	// Service is the server's Service.
	Service types.NamespacedName
	Clock   clock.WithTicker
}

// Controller provides the certificate of one replica, and renews it while the server runs.
type Controller struct {
	config         Config
	name           string
	registrations  *registrations
	reporter       reporter
	watches        *watches
	changeDetector changeDetector

	mutex     sync.Mutex
	listeners []dynamiccertificates.Listener
	// shown is nil before the first sync. Only syncs change it.
	shown *identity
	// handover is the transition to the next certificate, if there is one.
	handover handover
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Controller{}
	_ dynamiccertificates.ControllerRunner       = &Controller{}
)

// New returns a Controller without a certificate. RunOnce loads it.
func New(config Config) *Controller {
	name, watches := ServerName(config.Service), newWatches(config.Watcher)
	return &Controller{
		config: config, name: name, handover: handover{name: name}, watches: watches, changeDetector: newChangeDetector(watches, config.Source),
		registrations: &registrations{
			client: config.Client, service: config.Service, since: map[location]time.Time{}, remarks: map[string]string{},
		},
	}
}

// ServerName returns the name by which API servers verify a server behind a Service.
func ServerName(service types.NamespacedName) string {
	return service.Name + "." + service.Namespace + ".svc"
}

// Names returns all names of a server behind a Service. The first is its ServerName.
func Names(service types.NamespacedName) []string {
	name := ServerName(service)
	return []string{name, name + ".cluster.local", service.Name + "." + service.Namespace, service.Name, "localhost"}
}

// Name identifies the source of the certificate.
func (c *Controller) Name() string { return "serving-certificate::" + c.config.Source.String() }

// CurrentCertKeyContent returns the served certificate and its key in PEM.
func (c *Controller) CurrentCertKeyContent() (certificate, key []byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.shown == nil {
		return nil, nil
	}
	return c.shown.certificate, c.shown.key
}

// AddListener registers a listener for changes of the served certificate.
func (c *Controller) AddListener(listener dynamiccertificates.Listener) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.listeners = append(c.listeners, listener)
}

// RunOnce syncs once if necessary. It returns an error only if there is no certificate; other failures are logged and
// counted.
func (c *Controller) RunOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(logredact.WithoutBodies(ctx), syncTimeout)
	defer cancel()
	now := c.config.Clock.Now()
	c.changeDetector.begin(now)
	failure := c.look(ctx, now)
	c.reporter.report(ctx, "Failed to update the serving certificate, will retry", failure)
	if shown, _ := c.state(); shown == nil {
		return fmt.Errorf("no serving certificate: %w", failure)
	}
	return nil
}

// Run syncs as necessary until ctx is done.
func (c *Controller) Run(ctx context.Context, _ int) {
	if err := c.watches.start(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to watch the objects that register the server, reading them every few seconds")
	}
	defer c.watches.running.Wait()
	every(ctx, c.config.Clock, func() {
		if !c.idle(c.config.Clock.Now()) {
			_ = c.RunOnce(ctx) // what there is to say has been logged
		}
	})
}

// idle reports whether a sync would change nothing, as far as that is known without a request to the cluster.
func (c *Controller) idle(now time.Time) bool {
	shown, next := c.state()
	return shown != nil && shown == next && !c.reporter.failing() && c.changeDetector.quiet(now) && !c.config.Source.changed(now, shown)
}

// every calls look periodically until ctx is done.
func every(ctx context.Context, clock clock.WithTicker, look func()) {
	ticker := clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			look()
		}
	}
}

// look reads the source, adds its authorities to the bundles, and serves the certificate once that is safe.
func (c *Controller) look(ctx context.Context, now time.Time) error {
	var failure error
	shown, waiting := c.state()
	if shown != nil {
		renewed, err := c.config.Source.renewed(now, shown)
		failure = errors.Join(failure, err)
		if shown != renewed {
			shown = c.show(ctx, renewed, now)
		}
	}
	wanted, err := c.config.Source.wanted(ctx, now, shown, waiting)
	failure = errors.Join(failure, err)
	if wanted == nil {
		wanted = shown
	}
	if wanted == nil {
		return failure
	}
	c.wait(wanted, now)
	trusts, err := c.registrations.change(ctx, now, c.add(now))
	failure = errors.Join(failure, err)
	if wanted != shown && c.handover.safe(shown, trusts, now) {
		c.show(ctx, wanted, now)
	}
	return failure
}

// state returns the current and the next certificate. Either can be nil.
func (c *Controller) state() (shown, next *identity) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.shown, c.handover.next
}

// wait sets the next certificate.
func (c *Controller) wait(wanted *identity, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.handover.to(wanted, now)
}

// show serves a certificate and returns it.
func (c *Controller) show(ctx context.Context, shown *identity, now time.Time) *identity {
	c.mutex.Lock()
	c.shown = shown
	listeners := slices.Clone(c.listeners)
	c.mutex.Unlock()
	for _, each := range listeners {
		each.Enqueue()
	}
	observe(shown, c.name, now)
	klog.FromContext(ctx).Info("Serving a new certificate",
		"source", c.config.Source.String(), "certificate", describe(shown.leaf()), "authority", describe(shown.authorities[0]))
	return shown
}

// needed returns the authorities of the current and the next certificate.
func (c *Controller) needed() []*x509.Certificate {
	var found []*x509.Certificate
	shown, next := c.state()
	for _, identity := range []*identity{next, shown} {
		if identity == nil {
			continue
		}
		for _, each := range identity.authorities {
			if !contains(found, each) {
				found = append(found, each)
			}
		}
	}
	return found
}

// add returns the edit that adds the authorities of this replica to a bundle.
func (c *Controller) add(now time.Time) edit {
	needed := c.needed()
	return func(held []*x509.Certificate) []*x509.Certificate { return withAuthorities(held, needed, now) }
}
