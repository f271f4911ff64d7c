// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/x509"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// webhookUser is the user of requests that have the secret of the webhook's path. At that path, only the secret
// authenticates, so no other client has this name there.
const webhookUser = "slipstream:admission-webhook"

// authenticator authenticates requests to the paths of the endpoints and delegates all others to the server's own
// authenticator. The two do not overlap: at the audit and webhook paths no front proxy, token or certificate of the
// cluster is accepted, and the certificates for these paths are not accepted elsewhere. Reviews that kube-apiserver
// sends through its aggregator are authenticated by the delegate; failures are counted as for the other endpoints.
func (e *Endpoints) authenticator(delegate authenticator.Request) authenticator.Request {
	audit := ofCertificate(e.auditCA, e.auditNames, x509request.NewDynamic(verifyBy(e.auditCA), x509request.UserConversionFunc(commonName)))
	var webhook authenticator.Request = authenticator.RequestFunc(e.authenticateWebhook)
	if e.webhookCA != nil {
		// Secrets are compared only for clients with a valid certificate.
		webhook = ofCertificate(e.webhookCA, nil, webhook)
	}
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		switch {
		case e.isAudit(r.URL.Path):
			return countFailures(auditEndpoint, audit, r)
		case e.isWebhook(r.URL.Path):
			return countFailures(webhookEndpoint, webhook, r)
		case r.URL.Path == admissionPath:
			return countFailures(admissionEndpoint, delegate, r)
		}
		return delegate.AuthenticateRequest(r)
	})
}

// ofCertificate requires a client certificate of the authorities, with one of the common names if there are any, before
// it calls next.
func ofCertificate(
	authorities *dynamiccertificates.DynamicFileCAContent, names []string, next authenticator.Request,
) authenticator.Request {
	return x509request.NewDynamicCAVerifier(verifyBy(authorities), next, x509request.StaticStringSlice(names))
}

func verifyBy(authorities *dynamiccertificates.DynamicFileCAContent) x509request.VerifyOptionFunc {
	if authorities == nil {
		return func() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }
	}
	return authorities.VerifyOptions
}

// commonName returns the common name of a certificate as user. The only group is system:authenticated: an authority that
// vouches for the API server's audit backend must not be able to grant system:masters.
func commonName(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
	if chain[0].Subject.CommonName == "" {
		return nil, false, nil
	}
	return &authenticator.Response{
		User: &user.DefaultInfo{Name: chain[0].Subject.CommonName, Groups: []string{user.AllAuthenticated}},
	}, true, nil
}

// countFailures authenticates a request and counts it as refused if it has no valid credentials.
func countFailures(endpoint string, wrapped authenticator.Request, r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := wrapped.AuthenticateRequest(r)
	if err != nil || !ok {
		refusals.WithLabelValues(endpoint, unauthenticated).Inc()
	}
	return response, ok, err
}

// authenticateWebhook checks the secret that withoutSegment has removed from the path. It returns no error for a wrong
// secret: errors are logged, and any client can send a wrong one.
func (e *Endpoints) authenticateWebhook(r *http.Request) (*authenticator.Response, bool, error) {
	segment, _ := r.Context().Value(segmentKey{}).(string)
	if r.TLS == nil || !e.segments.match(segment) {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: webhookUser}}, true, nil
}
