// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	_ "embed"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster/pki"
)

const (
	// ServerUser is the user of the server in the cluster: the service account of the chart.
	ServerUser = "system:serviceaccount:" + ServerNamespace + ":" + serverAccount

	serverAccount = "slipstream"
	// partPrefix is the prefix of the names of optional roles of the account.
	partPrefix = "slipstream-server-"
	// tokenSeconds exceed the lifetime of every cluster: the token is never renewed.
	tokenSeconds = 365 * 24 * 60 * 60
	// documentSeparator is between the objects of a manifest.
	documentSeparator = "\n---\n"
)

// installManifest is the chart rendered with values that grant the account all permissions that it can have.
//
//go:embed install.yaml
var installManifest string

// right has the fields of a manifest's object that grant permissions.
type right struct {
	Kind     string         `json:"kind"`
	RoleRef  rbacv1.RoleRef `json:"roleRef"`
	document string
}

// ServerAccount returns the kubeconfig of the server.
func (c *Cluster) ServerAccount() Kubeconfig { return Kubeconfig(c.files.kubeconfig(serverKubeconfig)) }

// prepareAccount grants the permissions of the server's account and requests a token of it, once.
func (c *Cluster) prepareAccount(ctx context.Context) error {
	_, err := os.Stat(c.files.kubeconfig(serverKubeconfig))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	rights, err := c.rights()
	if err != nil {
		return err
	}
	if err := c.apply(ctx, rights); err != nil {
		return fmt.Errorf("failed to grant the server's permissions: %w", err)
	}
	admin, err := c.adminClient()
	if err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	token, err := admin.CoreV1().ServiceAccounts(ServerNamespace).CreateToken(ctx, serverAccount, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("failed to request a token of the server's account: %w", err)
	}
	authority, err := pki.Read(c.files.pki(), clusterAuthority)
	if err != nil {
		return err
	}
	_, err = c.encodeKubeconfig(serverKubeconfig, ServerUser, authority.Certificate, &api.AuthInfo{Token: token.Status.Token})
	return err
}

// rights returns the objects of the manifest that define the account and its permissions, without the unwanted parts. The other objects
// need nodes, or are created differently in this cluster.
func (c *Cluster) rights() (string, error) {
	manifest := installManifest
	if file := c.state.Options.Manifest; file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("failed to read the manifest with the server's permissions: %w", err)
		}
		manifest = string(content)
	}
	var chosen []string
	for document := range strings.SplitSeq(manifest, documentSeparator) {
		object := right{document: document}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return "", fmt.Errorf("failed to decode the manifest with the server's permissions: %w", err)
		}
		if c.wants(&object) {
			chosen = append(chosen, document)
		}
	}
	return strings.Join(chosen, documentSeparator), nil
}

func (c *Cluster) wants(object *right) bool {
	switch object.Kind {
	case "ServiceAccount", "ClusterRole", "Role", "RoleBinding":
		return true
	case "ClusterRoleBinding":
		parts := c.state.Options.Parts
		return parts == nil || !strings.HasPrefix(object.RoleRef.Name, partPrefix) || slices.Contains(parts, object.RoleRef.Name)
	}
	return false
}
