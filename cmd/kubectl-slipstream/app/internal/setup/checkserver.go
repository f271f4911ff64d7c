// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

// webhookName is the name of the ValidatingWebhookConfiguration that reports the authors of changes.
const webhookName = "slipstream-attribution"

var webhooks = schema.GroupVersionResource{
	Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
}

// checkCluster checks that kube-apiserver responds.
func (c *check) checkCluster(ctx context.Context) bool {
	found, err := discovery.ToDiscoveryInterfaceWithContext(c.discovery).ServerVersionWithContext(ctx)
	if err != nil {
		c.fail("cluster", oneLine(err), "check the kubeconfig, its context and your login: kubectl version")
		return false
	}
	c.ok("cluster", "kube-apiserver %s answers", found.GitVersion)
	return true
}

// checkAPI checks that the API of the server is registered and available.
func (c *check) checkAPI(ctx context.Context) bool {
	const about = "API"
	server, err := readRegistration(ctx, c.dynamic)
	switch {
	case apierrors.IsForbidden(err):
		return c.checkServed(ctx) // Only administrators may read the registration.
	case apierror.IsAbsent(err):
		c.fail(about, apiServiceName+" is not registered", "install the server: "+cli.Docs+"install.md")
		return false
	case err != nil:
		c.fail(about, oneLine(err), "")
		return false
	case server.service == "":
		c.fail(about, apiServiceName+" is registered without a Service, so definitions of these kinds are installed instead of the server",
			"delete these CustomResourceDefinitions: "+cli.Docs+"migrating-from-gitops-reverser.md")
		return false
	case server.available == nil:
		c.fail(about, "kube-apiserver has not checked "+apiServiceName+" yet", "wait some seconds")
		return false
	case server.available.Status != metav1.ConditionTrue:
		c.fail(about, fmt.Sprintf("%s is not available: %s: %s", apiServiceName, server.available.Reason, server.available.Message),
			fmt.Sprintf("kubectl get pods -n %[1]s; kubectl logs -n %[1]s deploy/slipstream; %[2]sinstall.md explains the reason",
				server.namespace, cli.Docs))
		return false
	}
	if err := c.request(ctx); err != nil { // The registration says that it is available for some time after its end.
		c.unavailable(about, err)
		return false
	}
	c.ok(about, "%s is available, served by the Service %s/%s", apiServiceName, server.namespace, server.service)
	return true
}

// request asks the server for its resources.
func (c *check) request(ctx context.Context) error {
	_, err := discovery.ToDiscoveryInterfaceWithContext(c.discovery).ServerResourcesForGroupVersionWithContext(
		ctx, v1alpha1.SchemeGroupVersion.String())
	return err
}

// unavailable adds that the server does not answer. What needs it is not checked then.
func (c *check) unavailable(about string, err error) {
	c.fail(about, cli.Unavailable+", so nothing more is checked: "+oneLine(err), cli.SeeUnavailable)
}

// checkServed checks that the API is served, as a user sees it who may not read its registration.
func (c *check) checkServed(ctx context.Context) bool {
	const about = "API"
	group := v1alpha1.SchemeGroupVersion.String()
	err := c.request(ctx)
	switch {
	case apierror.IsAbsent(err):
		c.fail(about, group+" is not served", "ask an administrator of the cluster to install the server: "+cli.Docs+"install.md")
	case apierrors.IsServiceUnavailable(err):
		c.unavailable(about, err)
	case err != nil:
		c.fail(about, group+" does not answer: "+oneLine(err), "ask an administrator of the cluster to run this check")
	default:
		c.ok(about, "%s is served", group)
	}
	return err == nil
}

// checkVersion compares the versions of server and plugin.
func (c *check) checkVersion(ctx context.Context) bool {
	const about = "version"
	server, err := serverVersion(ctx, c.discovery)
	if err != nil {
		c.warn(about, "the version of the server is not known: "+oneLine(err), "")
		return true
	}
	plugin := pluginVersion()
	switch fits, err := versionsFit(plugin, server); {
	case err != nil:
		c.ok(about, "server %s, plugin %s: not compared, since one of them is no release", server, plugin)
	case !fits:
		c.warn(about, fmt.Sprintf("server %s, plugin %s: more than one minor version apart", server, plugin),
			"install the plugin of the server's version")
	default:
		c.ok(about, "server %s, plugin %s", server, plugin)
	}
	return true
}

// serverVersion returns the version of the server, which is in its OpenAPI document.
func serverVersion(ctx context.Context, client discovery.DiscoveryInterface) (string, error) {
	path := "/openapi/v3/apis/" + v1alpha1.SchemeGroupVersion.String()
	body, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var document struct {
		Info struct{ Version string }
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	if document.Info.Version == "" {
		return "", errors.New(path + " has no version")
	}
	return document.Info.Version, nil
}

// versionsFit reports whether two versions are at most one minor version apart. It returns an error if one of them is no version.
func versionsFit(one, other string) (bool, error) {
	a, err := version.ParseSemantic(one)
	if err != nil {
		return false, err
	}
	b, err := version.ParseSemantic(other)
	if err != nil {
		return false, err
	}
	apart := max(a.Minor(), b.Minor()) - min(a.Minor(), b.Minor())
	return a.Major() == b.Major() && apart <= 1, nil
}

// checkAuthors checks whether the cluster reports the authors of changes: by what the destinations say, and else by the webhook.
func (c *check) checkAuthors(ctx context.Context) bool {
	const about = "authors"
	for _, each := range c.results {
		if each.Check == about {
			return true // A destination has said it.
		}
	}
	_, err := c.dynamic.Resource(webhooks).Get(ctx, webhookName, metav1.GetOptions{})
	switch {
	case err == nil:
		c.ok(about, "the admission webhook %s reports them", webhookName)
	case apierror.IsAbsent(err):
		c.warn(about, "the cluster does not report who makes changes, so commits name no users", "configure a webhook: "+cli.Docs+"attribution.md")
	case apierrors.IsForbidden(err):
		c.warn(about, "no destination says whether the cluster reports them, and you may not read the webhook "+webhookName,
			"ask an administrator of the cluster to run this check")
	default:
		c.warn(about, oneLine(err), "")
	}
	return true
}
