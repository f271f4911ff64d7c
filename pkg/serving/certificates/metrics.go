// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

var (
	certificateNotBefore = metrics.NewGauge("serving_certificate_not_before_timestamp_seconds",
		"Start of the validity of the certificate that this replica serves, in seconds since 1970.")
	certificateExpiration = metrics.NewGauge("serving_certificate_expiration_timestamp_seconds",
		"Expiry of the certificate that this replica serves, in seconds since 1970.")
	authorityExpiration = metrics.NewGauge("serving_authority_expiration_timestamp_seconds",
		"Expiry of the authority that clients trust for the certificate of this replica, in seconds since 1970.")
	bundleFailures = metrics.NewCounter("serving_bundle_failures_total",
		"Failures to renew the serving certificate, or to update the authorities that the cluster trusts for it.")
	unregistered = metrics.NewGaugeVec("serving_unregistered",
		"1 while the cluster does not forward requests for the kinds to this server, by reason: absent, custom_resources or another_service.",
		"reason")
)

// Values of the reason why requests for the kinds do not reach this server.
const (
	// absent: there is no APIService.
	absent = "absent"
	// byDefinitions: kube-apiserver serves the kinds itself, from definitions of custom resources.
	byDefinitions = "custom_resources"
	// byAnotherService: the APIService leads somewhere else.
	byAnotherService = "another_service"
)

func init() {
	legacyregistry.MustRegister(certificateNotBefore, certificateExpiration, authorityExpiration, bundleFailures, unregistered)
	observeAbsence("") // nothing is known yet to be in the way
}

// observeAbsence sets the metric of why requests for the kinds do not reach this server, empty if they do.
func observeAbsence(why string) {
	for _, reason := range []string{absent, byDefinitions, byAnotherService} {
		value := 0.0
		if reason == why {
			value = 1
		}
		unregistered.WithLabelValues(reason).Set(value)
	}
}

// observe sets the metric of the served certificate's expiry.
func observe(shown *identity, name string, now time.Time) {
	certificateNotBefore.Set(float64(shown.leaf().NotBefore.Unix()))
	certificateExpiration.Set(float64(shown.leaf().NotAfter.Unix()))
	if path, err := shown.path(shown.authorities, name, now); err == nil {
		authorityExpiration.Set(float64(path[len(path)-1].NotAfter.Unix()))
	}
}
