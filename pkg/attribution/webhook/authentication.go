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

// webhookUser is who has posted to the webhook's path with its secret. Nobody else is called so there: at that path
// nothing but the secret authenticates.
const webhookUser = "slipstream:admission-webhook"

// authenticator says who posts to the paths that have a way of their own, and leaves all others to the server's. Where
// one of them is looked at, nothing else is: no front proxy, token or certificate of the cluster gets anybody in, and the
// certificates of these paths get nobody in elsewhere. The path of kube-apiserver's own reviews has none: its sender is who
// the server says, and whom the server does not know is counted like the others.
func (e *Endpoints) authenticator(others authenticator.Request) authenticator.Request {
	audit := ofCertificate(e.auditCA, e.auditNames, x509request.NewDynamic(verifyBy(e.auditCA), x509request.UserConversionFunc(commonName)))
	var webhook authenticator.Request = authenticator.RequestFunc(e.authenticateWebhook)
	if e.webhookCA != nil {
		// Without a certificate that fits, nobody may try secrets.
		webhook = ofCertificate(e.webhookCA, nil, webhook)
	}
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		switch {
		case e.isAudit(r.URL.Path):
			return counted(auditEndpoint, audit, r)
		case e.isWebhook(r.URL.Path):
			return counted(webhookEndpoint, webhook, r)
		case r.URL.Path == admissionPath:
			return counted(admissionEndpoint, others, r)
		}
		return others.AuthenticateRequest(r)
	})
}

// ofCertificate demands a certificate of the authorities, with one of the names if there are any, before it asks next.
func ofCertificate(authorities *dynamiccertificates.DynamicFileCAContent, names []string, next authenticator.Request) authenticator.Request {
	return x509request.NewDynamicCAVerifier(verifyBy(authorities), next, x509request.StaticStringSlice(names))
}

func verifyBy(authorities *dynamiccertificates.DynamicFileCAContent) x509request.VerifyOptionFunc {
	if authorities == nil {
		return func() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }
	}
	return authorities.VerifyOptions
}

// commonName makes the common name of a certificate the user, who is in no group but that of everybody who is known: an
// authority that may say who the API server's audit is shall not say who is in system:masters.
func commonName(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
	if chain[0].Subject.CommonName == "" {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: chain[0].Subject.CommonName, Groups: []string{user.AllAuthenticated}}}, true, nil
}

// counted counts requests that a proof does not let in.
func counted(endpoint string, proof authenticator.Request, r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := proof.AuthenticateRequest(r)
	if err != nil || !ok {
		refusals.WithLabelValues(endpoint, unauthenticated).Inc()
	}
	return response, ok, err
}

// authenticateWebhook looks at the secret that withoutSegment has taken out of the path. It has no error for a wrong one:
// that would be logged, and anybody can come with one.
func (e *Endpoints) authenticateWebhook(r *http.Request) (*authenticator.Response, bool, error) {
	segment, _ := r.Context().Value(segmentKey{}).(string)
	if r.TLS == nil || !e.segments.match(segment) {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: webhookUser}}, true, nil
}
