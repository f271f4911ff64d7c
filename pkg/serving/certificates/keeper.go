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

// lookTimeout bounds one look, and with it what the start waits for a cluster that does not answer.
const lookTimeout = 10 * time.Second

// Config is what a Keeper needs.
type Config struct {
	Source Source
	// Client reaches the objects by which the cluster finds the server.
	Client dynamic.Interface
	// Watcher tells when they change. Without it they are read every few seconds.
	Watcher metadata.Interface
	// Service is that in front of the server.
	Service types.NamespacedName
	Clock   clock.WithTicker
}

// Keeper is the certificate of one replica. It keeps itself up to date while the server serves with it.
type Keeper struct {
	config        Config
	name          string
	registrations *registrations
	reporter      reporter
	watches       *watches
	vigil         vigil

	mutex     sync.Mutex
	listeners []dynamiccertificates.Listener
	// shown is nil before the first look. It is changed by looks only.
	shown *identity
	// handover is to what waits to be shown, if anything does.
	handover handover
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Keeper{}
	_ dynamiccertificates.ControllerRunner       = &Keeper{}
)

// New returns a Keeper that shows nothing before RunOnce.
func New(config Config) *Keeper {
	name, watches := ServerName(config.Service), newWatches(config.Watcher)
	return &Keeper{
		config: config, name: name, handover: handover{name: name}, watches: watches, vigil: newVigil(watches, config.Source),
		registrations: &registrations{
			client: config.Client, service: config.Service, since: map[sighting]time.Time{}, remarks: map[string]string{},
		},
	}
}

// ServerName is the name in the certificate by which API servers know a server behind a Service.
func ServerName(service types.NamespacedName) string {
	return service.Name + "." + service.Namespace + ".svc"
}

// Names are all names by which a server behind a Service is reached. The first is its ServerName.
func Names(service types.NamespacedName) []string {
	name := ServerName(service)
	return []string{name, name + ".cluster.local", service.Name + "." + service.Namespace, service.Name, "localhost"}
}

// Name is where the certificate comes from.
func (k *Keeper) Name() string { return "serving-certificate::" + k.config.Source.String() }

// CurrentCertKeyContent is what the server shows, in PEM.
func (k *Keeper) CurrentCertKeyContent() (certificate, key []byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.shown == nil {
		return nil, nil
	}
	return k.shown.certificate, k.shown.key
}

// AddListener has somebody told when the server shows something else.
func (k *Keeper) AddListener(listener dynamiccertificates.Listener) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.listeners = append(k.listeners, listener)
}

// RunOnce does what is due. The error says that there is nothing to show; other trouble is logged and counted.
func (k *Keeper) RunOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(logredact.WithoutBodies(ctx), lookTimeout)
	defer cancel()
	now := k.config.Clock.Now()
	k.vigil.begin(now)
	failure := k.look(ctx, now)
	k.reporter.report(ctx, "The serving certificate cannot be brought up to date for now, trying again", failure)
	if shown, _ := k.state(); shown == nil {
		return fmt.Errorf("no serving certificate: %w", failure)
	}
	return nil
}

// Run does what is due until ctx is done.
func (k *Keeper) Run(ctx context.Context, _ int) {
	if err := k.watches.start(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "The objects by which the cluster finds the server are not watched, but read every few seconds")
	}
	defer k.watches.running.Wait()
	every(ctx, k.config.Clock, func() {
		if !k.idle(k.config.Clock.Now()) {
			_ = k.RunOnce(ctx) // what there is to say has been logged
		}
	})
}

// idle tells whether a look would change nothing, as far as that can be told without asking the cluster.
func (k *Keeper) idle(now time.Time) bool {
	shown, next := k.state()
	return shown != nil && shown == next && !k.reporter.failing() && k.vigil.quiet(now) && !k.config.Source.changed(now, shown)
}

// every calls look again and again until ctx is done.
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

// look reads the source, has the cluster trust it, and shows what is safe to show.
func (k *Keeper) look(ctx context.Context, now time.Time) error {
	var failure error
	shown, waiting := k.state()
	if shown != nil {
		renewed, err := k.config.Source.renewed(now, shown)
		failure = errors.Join(failure, err)
		if shown != renewed {
			shown = k.show(ctx, renewed, now)
		}
	}
	wanted, err := k.config.Source.wanted(ctx, now, shown, waiting)
	failure = errors.Join(failure, err)
	if wanted == nil {
		wanted = shown
	}
	if wanted == nil {
		return failure
	}
	k.wait(wanted, now)
	trusts, err := k.registrations.change(ctx, now, k.add(now))
	failure = errors.Join(failure, err)
	if wanted != shown && k.handover.safe(shown, trusts, now) {
		k.show(ctx, wanted, now)
	}
	return failure
}

// state is what is shown and what waits to be; either may be nil.
func (k *Keeper) state() (shown, next *identity) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.shown, k.handover.next
}

// wait has an identity wait for being shown.
func (k *Keeper) wait(wanted *identity, now time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.handover.to(wanted, now)
}

// show has the server show an identity, and returns it.
func (k *Keeper) show(ctx context.Context, shown *identity, now time.Time) *identity {
	k.mutex.Lock()
	k.shown = shown
	listeners := slices.Clone(k.listeners)
	k.mutex.Unlock()
	for _, each := range listeners {
		each.Enqueue()
	}
	observe(shown, k.name, now)
	klog.FromContext(ctx).Info("Serving with another certificate",
		"source", k.config.Source.String(), "certificate", describe(shown.leaf()), "authority", describe(shown.authorities[0]))
	return shown
}

// needed are the authorities of what is shown and of what waits to be.
func (k *Keeper) needed() []*x509.Certificate {
	var found []*x509.Certificate
	shown, next := k.state()
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

// add puts what this replica needs into a bundle.
func (k *Keeper) add(now time.Time) edit {
	needed := k.needed()
	return func(held []*x509.Certificate) []*x509.Certificate { return withAuthorities(held, needed, now) }
}
