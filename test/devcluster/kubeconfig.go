// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// Kubeconfig is the path of the kubeconfig of a user.
type Kubeconfig string

// RESTConfig returns a client configuration for that user, without a rate limit.
func (k Kubeconfig) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", string(k))
	if err != nil {
		return nil, fmt.Errorf("failed to read kubeconfig %s: %w", k, err)
	}
	config.QPS = -1
	return config, nil
}

// adminClient returns a client of the cluster administrator. Conditions that are checked again and again use it: each run of kubectl
// takes a tenth of a second of the processor.
func (c *Cluster) adminClient() (*kubernetes.Clientset, error) {
	config, err := c.Admin().RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to create a client: %w", err)
	}
	return client, nil
}

// Admin returns the kubeconfig of a user that bypasses authorization. For tests of
// authorization, use User.
func (c *Cluster) Admin() Kubeconfig {
	return Kubeconfig(c.files.kubeconfig("admin"))
}

// User returns the kubeconfig of a user in the given groups, authenticated by a client
// certificate. The user has the rights that RBAC grants to that name, those groups and
// system:authenticated.
func (c *Cluster) User(name string, groups ...string) (Kubeconfig, error) {
	pair, err := pki.Read(c.files.pki(), clusterAuthority)
	if err != nil {
		return "", err
	}
	authority, err := pki.ParseAuthority(pair)
	if err != nil {
		return "", err
	}
	file := "user." + url.PathEscape(strings.Join(append([]string{name}, groups...), "+"))
	return c.writeKubeconfig(authority, file, name, groups...)
}

// writeKubeconfig writes the kubeconfig of a user to kubeconfigs/FILE.kubeconfig.
func (c *Cluster) writeKubeconfig(authority *pki.Authority, file, user string, groups ...string) (Kubeconfig, error) {
	client, err := authority.Client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.encodeKubeconfig(file, user, authority.Certificate, &clientcmdapi.AuthInfo{
		ClientCertificateData: client.Certificate,
		ClientKeyData:         client.Key,
	})
}

// encodeKubeconfig writes the kubeconfig of a user with the given credentials.
func (c *Cluster) encodeKubeconfig(file, user string, authority []byte, proof *clientcmdapi.AuthInfo) (Kubeconfig, error) {
	const cluster = "slipstream-dev"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server:                   c.apiServerURL(),
		CertificateAuthorityData: authority,
	}
	config.AuthInfos[user] = proof
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("failed to encode the kubeconfig of %s: %w", user, err)
	}
	path := c.files.kubeconfig(file)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("failed to write the kubeconfig of %s: %w", user, err)
	}
	return Kubeconfig(path), nil
}
