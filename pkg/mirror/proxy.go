// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"crypto/x509"
	"net/http"
	"strings"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// proxy returns the proxy to a repository from its Secret, nil if it has none.
func (r *repositories) proxy(ctx context.Context, config *v1alpha1.GitRepoConfig) (*proxy.Proxy, error) {
	if config.Spec.ProxySecretRef == nil {
		return nil, nil
	}
	secret, err := r.secret(ctx, config, config.Spec.ProxySecretRef.Name, "spec.proxySecretRef")
	if err != nil {
		return nil, err
	}
	name := secret.Namespace + "/" + secret.Name
	through, err := proxy.FromSecret(name, secret.Data)
	if err != nil {
		return nil, refused(v1alpha1.ReasonSecretInvalid, "Secret %s (spec.proxySecretRef) has no usable proxy: %s", name, err)
	}
	if !strings.HasPrefix(config.Spec.RepoURL, "http") && !through.ForwardsSSH() {
		return nil, refused(v1alpha1.ReasonSecretInvalid,
			"Secret %s (spec.proxySecretRef) has an HTTP proxy: an SSH URL needs a SOCKS5 proxy, with an address that begins with socks5://", name)
	}
	return through, nil
}

// hostClient returns a client for the API of the host of a repository. It connects as the remote of the repository does: to the
// addresses that are allowed, through its proxy if it has one. It trusts the authorities in caBundle beside those of the system.
func (r *repositories) hostClient(ctx context.Context, config *v1alpha1.GitRepoConfig, caBundle []byte) (*http.Client, error) {
	through, err := r.proxy(ctx, config)
	if err != nil {
		return nil, err
	}
	configuration, err := outbound.TLSConfig(caBundle)
	if err != nil {
		return nil, err
	}
	if system, err := x509.SystemCertPool(); err == nil && len(caBundle) > 0 {
		system.AppendCertsFromPEM(caBundle)
		configuration.RootCAs = system
	}
	return outbound.NewHTTPClient(r.network.Through(through), configuration), nil
}
