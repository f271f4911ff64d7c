// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"

	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// Names of the files in the folder of the certificates.
const (
	clusterAuthority    = "cluster-ca"
	frontProxyAuthority = "front-proxy-ca"
	serverAuthority     = "slipstream-ca"

	adminCertificate             = "admin"
	frontProxyCertificate        = "front-proxy-client"
	apiServerCertificate         = "kube-apiserver"
	controllerManagerCertificate = "kube-controller-manager"
	schedulerCertificate         = "kube-scheduler"
	serverCertificate            = "slipstream"

	serviceAccountKey  = "service-account"
	gitHostKey         = "git-host"
	gitClientKey       = "git-client"
	gitAuthorizedKeys  = "git-authorized-keys"
	gitKnownHosts      = "git-known-hosts"
	frontProxyUserName = "front-proxy-client"
	kwokUser           = "kwok"
)

// mastersGroup is the group that bypasses authorization.
const mastersGroup = "system:masters"

// writeCredentials creates the certificates and keys of the parts. The front
// proxy has an authority of its own: every holder of a certificate of the cluster's
// authority is a user, and must not be able to impersonate other users.
func (c *Cluster) writeCredentials() error {
	cluster, err := c.writeAuthority(clusterAuthority)
	if err != nil {
		return err
	}
	frontProxy, err := c.writeAuthority(frontProxyAuthority)
	if err != nil {
		return err
	}
	server, err := c.writeAuthority(serverAuthority)
	if err != nil {
		return err
	}
	if err := c.writeServing(cluster, server); err != nil {
		return err
	}
	if err := c.writeClient(frontProxy, frontProxyCertificate, frontProxyUserName); err != nil {
		return err
	}
	if err := c.writeUsers(cluster); err != nil {
		return err
	}
	if err := c.writeAttribution(); err != nil {
		return err
	}
	return c.writeKeys()
}

// writeAuthority creates an authority and writes it.
func (c *Cluster) writeAuthority(name string) (*pki.Authority, error) {
	authority, err := pki.NewAuthority(name)
	if err != nil {
		return nil, err
	}
	return authority, authority.Write(c.files.pki(), name)
}

// writeServing creates the serving certificates.
func (c *Cluster) writeServing(cluster, server *pki.Authority) error {
	for _, each := range []struct {
		authority *pki.Authority
		name      string
		hosts     []string
	}{
		{cluster, apiServerCertificate, []string{"kubernetes.default.svc", serviceAddress}},
		{cluster, controllerManagerCertificate, nil},
		{cluster, schedulerCertificate, nil},
		// The aggregator checks the certificate against the Service's name.
		{server, serverCertificate, []string{serverService + "." + ServerNamespace + ".svc"}},
	} {
		pair, err := each.authority.Server(each.name, append(each.hosts, "localhost", loopback)...)
		if err != nil {
			return err
		}
		if err := pair.Write(c.files.pki(), each.name); err != nil {
			return err
		}
	}
	return nil
}

// writeClient creates the certificate of a user and writes it.
func (c *Cluster) writeClient(authority *pki.Authority, name, user string, groups ...string) error {
	pair, err := authority.Client(user, groups...)
	if err != nil {
		return err
	}
	return pair.Write(c.files.pki(), name)
}

// writeUsers creates the users of the parts and the administrator.
func (c *Cluster) writeUsers(cluster *pki.Authority) error {
	if err := c.writeClient(cluster, adminCertificate, "health", mastersGroup); err != nil {
		return err
	}
	for _, each := range []struct {
		file, user string
		groups     []string
	}{
		{"admin", "admin", []string{mastersGroup}},
		{controllerManagerCertificate, "system:kube-controller-manager", nil},
		{schedulerCertificate, "system:kube-scheduler", nil},
		{kwokUser, kwokUser, []string{mastersGroup}},
	} {
		if _, err := c.writeKubeconfig(cluster, each.file, each.user, each.groups...); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys creates the keys that sign tokens of service accounts, and those of the Git
// server and its client.
func (c *Cluster) writeKeys() error {
	public := map[string][]byte{}
	for _, name := range []string{serviceAccountKey, gitHostKey, gitClientKey} {
		privateKey, publicKey, err := pki.NewKey()
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.files.key(name), privateKey, 0o600); err != nil {
			return fmt.Errorf("failed to write key %s: %w", name, err)
		}
		public[name] = publicKey
	}
	if err := os.WriteFile(c.files.join("pki", serviceAccountKey+".pub"), public[serviceAccountKey], 0o600); err != nil {
		return fmt.Errorf("failed to write the public key of service accounts: %w", err)
	}
	host, err := authorizedKey(c.files.key(gitHostKey))
	if err != nil {
		return err
	}
	client, err := authorizedKey(c.files.key(gitClientKey))
	if err != nil {
		return err
	}
	knownHost := fmt.Sprintf("[%s]:%d %s", loopback, c.state.Ports.GitSSH, host)
	for name, line := range map[string]string{gitAuthorizedKeys: client, gitKnownHosts: knownHost} {
		if err := os.WriteFile(c.files.join("pki", name), []byte(line), 0o600); err != nil {
			return fmt.Errorf("failed to write %s: %w", name, err)
		}
	}
	return nil
}

// authorizedKey returns the public half of a private key as a line of an authorized_keys file.
func authorizedKey(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("failed to read a key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(content)
	if err != nil {
		return "", fmt.Errorf("failed to read a key for SSH: %w", err)
	}
	return string(ssh.MarshalAuthorizedKey(signer.PublicKey())), nil
}
