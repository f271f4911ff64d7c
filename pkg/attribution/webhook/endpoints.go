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
	// auditPath is where audit events are posted.
	auditPath = "/audit"
	// admissionPath is where kube-apiserver posts admission reviews that it sends to itself: its aggregator carries them
	// here. It lies in our API group, and is no resource of it.
	admissionPath = "/apis/" + v1alpha1.GroupName + "/v1alpha1/" + admissionResource
	// admissionResource is what such a request seems to be about.
	admissionResource = "admissionreviews"
	// webhookPath begins the path at which admission reviews are posted without the aggregator.
	webhookPath = "/process-validating-webhook/"
)

// Config says who may tell what, and what becomes of it.
type Config struct {
	Recorder Recorder
	// Hash is the keyed hash of content with which the Joiner compares.
	Hash func([]byte) string
	// AuditClientCAFile has the authorities of the certificates with which audit events are posted, AuditClientNames the
	// common names that these may have. Without the file no audit events are taken.
	AuditClientCAFile string
	AuditClientNames  []string
	// AdmissionSegmentFile has the secrets that may end the webhook's path. Without it no reviews are taken there.
	AdmissionSegmentFile string
	// AdmissionClientCAFile has the authorities of certificates that are demanded there as well, if it is set.
	AdmissionClientCAFile string
	// Clock says when a review came.
	Clock clock.PassiveClock
}

// Endpoints take audit events and admission reviews, each from those only who may tell. They are made by New, become part
// of a server by Install, and need Run.
type Endpoints struct {
	audit   *auditHandler
	reviews *reviewHandler
	// auditCA, segments and webhookCA are nil where there is no such file.
	auditCA, webhookCA *dynamiccertificates.DynamicFileCAContent
	auditNames         []string
	segments           *segments
}

// New reads the files of config.
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

// Install makes the endpoints part of the server that config becomes. Authentication and authorization must have been
// chosen before.
//
// The handlers lie inside the server's chain of filters, before its dispatch to the API: a request has its identity and
// its right by then, and is subject to the server's deadlines and its shutdown as any other. Two filters see less of it:
// none learns the secret in the webhook's path (withoutSegment), and priority and fairness lets those pass that hold a
// certificate or a secret of ours (passage).
func (e *Endpoints) Install(config *genericapiserver.Config) error {
	// A client sends the certificate that fits what the server asks for. These authorities vouch for nothing else: only
	// the paths of their own look at certificates of theirs.
	for _, authorities := range []*dynamiccertificates.DynamicFileCAContent{e.auditCA, e.webhookCA} {
		if authorities == nil {
			continue
		}
		if err := config.Authentication.ApplyClientCert(authorities, config.SecureServing); err != nil {
			return fmt.Errorf("asking clients for certificates: %w", err)
		}
	}
	config.Authentication.Authenticator = e.authenticator(config.Authentication.Authenticator)
	var err error
	if config.Authorization.Authorizer, err = e.authorizer(config.Authorization.Authorizer); err != nil {
		return fmt.Errorf("deciding who may tell: %w", err)
	}
	if config.FlowControl != nil {
		config.FlowControl = passage{config.FlowControl, e}
	}
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		return e.withoutSegment(build(e.dispatch(handler), config))
	}
	return nil
}

// dispatch hands requests over whose senders have been found to be the right ones.
func (e *Endpoints) dispatch(others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case e.isAudit(r.URL.Path):
			e.audit.ServeHTTP(w, r)
		case r.URL.Path == admissionPath, e.isWebhook(r.URL.Path):
			e.reviews.ServeHTTP(w, r)
		default:
			others.ServeHTTP(w, r)
		}
	})
}

// isAudit and isWebhook say whether a path is one that only certificates or secrets of ours open.
func (e *Endpoints) isAudit(path string) bool   { return e.auditCA != nil && path == auditPath }
func (e *Endpoints) isWebhook(path string) bool { return e.segments != nil && path == webhookPath }

// Run turns reviews into facts and follows the file of segments, until ctx is done. The server follows the files of
// authorities.
func (e *Endpoints) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { e.reviews.Run(ctx) })
	if e.segments != nil {
		all.Go(func() { e.segments.Run(ctx) })
	}
	all.Wait()
}
