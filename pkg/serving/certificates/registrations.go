// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// Objects by which a cluster finds the server.
const (
	// APIServiceName is the name of the APIService.
	APIServiceName = "v1alpha1.configbutler.ai"
	// WebhookConfigurationName is the name of the webhook configuration for attribution.
	WebhookConfigurationName = "slipstream-attribution"
)

// registered are the objects that register the server.
var registered = []struct {
	resource schema.GroupVersionResource
	name     string
}{
	{schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, APIServiceName},
	{
		schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		WebhookConfigurationName,
	},
}

// registrations are the objects that register the server in the cluster, with the authorities that clients trust by
// them.
type registrations struct {
	client  dynamic.Interface
	service types.NamespacedName

	mutex sync.Mutex
	// since is the time when an authority was first seen at a location.
	since map[location]time.Time
	// remarks are the last messages about objects that are not maintained.
	remarks map[string]string
}

// location is an authority in one bundle.
type location struct {
	place       string
	certificate [sha256.Size]byte
}

// trust is the set of authorities that a client of the server trusts.
type trust struct {
	// unknown is set if the bundle could not be read.
	unknown     bool
	authorities []*x509.Certificate
	since       []time.Time
}

// longerThan returns the authorities that have been in the bundle for at least age.
func (t trust) longerThan(age time.Duration, now time.Time) []*x509.Certificate {
	var found []*x509.Certificate
	for index, each := range t.authorities {
		if now.Sub(t.since[index]) >= age {
			found = append(found, each)
		}
	}
	return found
}

// edit returns the new authorities of a bundle, or the held ones if the bundle does not change.
type edit func(held []*x509.Certificate) []*x509.Certificate

// change edits the bundles of all objects and returns what the cluster trusts afterwards. Bundles that another party
// maintains are only read. With an error it returns what is known; what could not be written is unchanged.
func (r *registrations) change(ctx context.Context, now time.Time, edit edit) ([]trust, error) {
	var trusts []trust
	var failure error
	for _, each := range registered {
		registration := registration{client: r.client.Resource(each.resource), kind: each.resource.Resource, name: each.name}
		bundles, err := r.changeOne(ctx, registration, edit)
		failure = errors.Join(failure, err)
		if bundles == nil && err != nil {
			trusts = append(trusts, trust{unknown: true})
		}
		for _, bundle := range bundles {
			trusts = append(trusts, r.trustOf(bundle, now))
		}
	}
	return trusts, failure
}

// registration is one of the objects.
type registration struct {
	client     dynamic.ResourceInterface
	kind, name string
}

// changeOne edits the bundles of one object if it exists.
func (r *registrations) changeOne(ctx context.Context, one registration, edit edit) ([]bundle, error) {
	var bundles []bundle
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := one.client.Get(ctx, one.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			bundles = nil
			r.observeRegistration(one.name, nil)
			return nil
		}
		if err != nil {
			bundles = nil
			return fmt.Errorf("reading %s %s: %w", one.kind, one.name, err)
		}
		r.observeRegistration(one.name, object)
		bundles = r.bundles(ctx, object)
		edited, changed := editAll(bundles, edit)
		if !changed {
			return nil
		}
		if _, err := one.client.Update(ctx, object, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
			return fmt.Errorf("writing the authorities of %s %s: %w", one.kind, one.name, err)
		}
		klog.FromContext(ctx).Info("Updated the authorities that the cluster trusts for this server",
			"resource", one.kind, "name", one.name, "authorities", names(edited))
		bundles = edited
		return nil
	})
	return bundles, err
}

// observeRegistration sets the metric of whether requests for the kinds reach this server.
func (r *registrations) observeRegistration(name string, object *unstructured.Unstructured) {
	if name == APIServiceName {
		observeAbsence(r.absence(object))
	}
}

// fieldManager is the server's field manager for bundles.
const fieldManager = "slipstream-serving"

// editAll edits bundles in their objects and returns the edited bundles.
func editAll(bundles []bundle, edit edit) (edited []bundle, changed bool) {
	for _, each := range bundles {
		if each.ours {
			wanted := edit(each.authorities)
			if !sameCertificates(wanted, each.authorities) {
				each.config["caBundle"] = base64.StdEncoding.EncodeToString(encodeBundle(wanted))
				each.authorities, changed = wanted, true
			}
		}
		edited = append(edited, each)
	}
	return edited, changed
}

// names returns the names of the authorities in bundles.
func names(bundles []bundle) []string {
	var found []string
	for _, bundle := range bundles {
		for _, each := range bundle.authorities {
			found = append(found, each.Subject.CommonName)
		}
	}
	return found
}

// trustOf returns what clients with a bundle trust, and since when.
func (r *registrations) trustOf(bundle bundle, now time.Time) trust {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	seen := trust{authorities: bundle.authorities}
	present := map[location]bool{}
	for _, each := range bundle.authorities {
		this := location{bundle.place, sha256.Sum256(each.Raw)}
		if _, known := r.since[this]; !known {
			r.since[this] = now
		}
		present[this] = true
		seen.since = append(seen.since, r.since[this])
	}
	for each := range r.since {
		if each.place == bundle.place && !present[each] {
			delete(r.since, each)
		}
	}
	return seen
}

// bundles returns the bundles in an object that are for this server.
func (r *registrations) bundles(ctx context.Context, object *unstructured.Unstructured) []bundle {
	var found []bundle
	for place, config := range clientConfigs(object) {
		bundle, remark := r.bundleOf(object, config)
		bundle.place = object.GetKind() + place
		if r.isNews(bundle.place, remark) {
			klog.FromContext(ctx).Info("Not writing the server's authority: "+remark, "kind", object.GetKind(), "name", object.GetName())
		}
		if bundle.config != nil {
			found = append(found, bundle)
		}
	}
	return found
}

// isNews reports whether a remark differs from the last one about a place.
func (r *registrations) isNews(place, remark string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	said := r.remarks[place]
	r.remarks[place] = remark
	return remark != "" && remark != said
}
