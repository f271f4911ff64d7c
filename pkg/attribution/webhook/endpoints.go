// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// auditPath is the path to which audit events are posted.
	auditPath = "/audit"
	// admissionPath is the path to which kube-apiserver posts admission reviews through its own aggregator. It is in our
	// API group, but is not a resource of it.
	admissionPath = "/apis/" + v1alpha1.GroupName + "/v1alpha1/" + admissionResource
	// admissionResource is the resource that RequestInfo has for a request to admissionPath.
	admissionResource = "admissionreviews"
	// webhookPath is the prefix of the path to which admission reviews are posted without the aggregator.
	webhookPath = "/process-validating-webhook/"
)

// Config configures the Endpoints.
type Config struct {
	Recorder Recorder
	// Hash returns the keyed hash of content, as the Joiner compares it.
	Hash func([]byte) string
	// AuditClientCAFile holds the certificate authorities for clients that post audit events, and AuditClientNames the
	// accepted common names. Without the file, audit events are not served.
	AuditClientCAFile string
	AuditClientNames  []string
	// AdmissionSegmentFile holds the secrets of which one must end the webhook's path. Without it, that path is not served.
	AdmissionSegmentFile string
	// AdmissionClientCAFile holds the certificate authorities for clients of the webhook's path. If it is set, these
	// clients need a certificate in addition to the secret.
	AdmissionClientCAFile string
	// Clock is the clock for the time at which a review is received.
	Clock clock.PassiveClock
}

// Endpoints serve audit events and admission reviews from authenticated senders. New creates them, Install adds them to a
// server, and Run must run for as long as they serve.
type Endpoints struct {
	audit   *auditHandler
	reviews *reviewHandler
	// auditCA, segments and webhookCA are nil if their file is not configured.
	auditCA, webhookCA *dynamiccertificates.DynamicFileCAContent
	auditNames         []string
	segments           *segments
}

// New returns Endpoints for a configuration and reads its files.
func New(config Config) (*Endpoints, error) {
	e := &Endpoints{
		audit: newAuditHandler(config.Recorder), reviews: newReviewHandler(config.Recorder, config.Hash, config.Clock),
		auditNames: config.AuditClientNames,
	}
	var err error
	if e.auditCA, err = newAuthorities("audit-client-ca", config.AuditClientCAFile); err != nil {
		return nil, err
	}
	if e.webhookCA, err = newAuthorities("admission-client-ca", config.AdmissionClientCAFile); err != nil {
		return nil, err
	}
	if config.AdmissionSegmentFile != "" {
		if e.segments, err = newSegments(config.AdmissionSegmentFile); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func newAuthorities(purpose, file string) (*dynamiccertificates.DynamicFileCAContent, error) {
	if file == "" {
		return nil, nil
	}
	authorities, err := dynamiccertificates.NewDynamicCAContentFromFile(purpose, file)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of clients: %w", err)
	}
	return authorities, nil
}

// Install adds the endpoints to a server's configuration. Authentication and authorization must be configured before.
//
// The handlers are inside the server's filter chain, before its dispatch to the API: a request is then authenticated and
// authorized, and is subject to the server's deadlines and shutdown like any other. There are two exceptions: no filter
// sees the secret of the webhook's path (withoutSegment), and priority and fairness exempts requests that are
// authenticated by a certificate or secret of the endpoints (flowControl).
func (e *Endpoints) Install(config *genericapiserver.Config) error {
	// A client sends a certificate only if the server lists its authority in the TLS handshake. Only the endpoints' own
	// paths accept certificates of these authorities.
	for _, authorities := range []*dynamiccertificates.DynamicFileCAContent{e.auditCA, e.webhookCA} {
		if authorities == nil {
			continue
		}
		if err := config.Authentication.ApplyClientCert(authorities, config.SecureServing); err != nil {
			return fmt.Errorf("adding client certificate authorities: %w", err)
		}
	}
	config.Authentication.Authenticator = e.authenticator(config.Authentication.Authenticator)
	var err error
	if config.Authorization.Authorizer, err = e.authorizer(config.Authorization.Authorizer); err != nil {
		return fmt.Errorf("adding the authorizer: %w", err)
	}
	if config.FlowControl != nil {
		config.FlowControl = flowControl{config.FlowControl, e}
	}
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		return e.withoutSegment(build(e.dispatch(handler), config))
	}
	return nil
}

// dispatch serves requests to the endpoints' paths, which are authorized at this point, and calls next for all others.
func (e *Endpoints) dispatch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case e.isAudit(r.URL.Path):
			e.audit.ServeHTTP(w, r)
		case r.URL.Path == admissionPath, e.isWebhook(r.URL.Path):
			e.reviews.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isAudit and isWebhook report whether a path accepts only certificates or secrets of the endpoints.
func (e *Endpoints) isAudit(path string) bool   { return e.auditCA != nil && path == auditPath }
func (e *Endpoints) isWebhook(path string) bool { return e.segments != nil && path == webhookPath }

// Run converts reviews to facts and watches the segment file, until ctx is done. The server itself watches the files of
// the certificate authorities.
func (e *Endpoints) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { e.reviews.Run(ctx) })
	if e.segments != nil {
		all.Go(func() { e.segments.Run(ctx) })
	}
	all.Wait()
}
