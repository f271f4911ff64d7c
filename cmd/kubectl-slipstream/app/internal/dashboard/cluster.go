// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// cluster has the clients of the user.
type cluster struct {
	config     genericclioptions.RESTClientGetter
	tables     *cli.Tables
	api        client.ConfigbutlerV1alpha1Interface
	objects    dynamic.Interface
	reviews    authorization.SelfSubjectAccessReviewInterface
	identities authentication.SelfSubjectReviewInterface
	// context is the name of the context of the kubeconfig, empty without one.
	context string
	// contexts is the number of contexts of the kubeconfig.
	contexts int
	// rest is the configuration of the clients.
	rest *rest.Config
	// hidden are texts that no message to the page contains: the address of the API server, and the paths of kubeconfigs.
	hidden *strings.Replacer
	// loggedOut is called when the API server no longer accepts the login of the user. It may be nil.
	loggedOut func()
}

// connect returns the clients for the API server of flags and kubeconfigs.
func connect(config *genericclioptions.ConfigFlags) (*cluster, error) {
	c, err := newCluster(config)
	if err != nil {
		return nil, err
	}
	loader := config.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, err
	}
	c.context, c.contexts = raw.CurrentContext, len(raw.Contexts)
	if given := config.Context; given != nil && *given != "" {
		c.context = *given
	}
	c.hidden = hide(c.rest.Host, append(loader.ConfigAccess().GetLoadingPrecedence(), pathsIn(&raw)...))
	return c, nil
}

// newCluster returns the clients for an API server.
func newCluster(config genericclioptions.RESTClientGetter) (*cluster, error) {
	found, err := config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	c := &cluster{config: config, rest: found}
	if c.tables, err = cli.NewTables(config); err != nil {
		return nil, err
	}
	if c.api, err = cli.Connect(config); err != nil {
		return nil, err
	}
	if c.objects, err = dynamic.NewForConfig(found); err != nil {
		return nil, err
	}
	reviews, err := authorization.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	identities, err := authentication.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	c.reviews, c.identities = reviews.SelfSubjectAccessReviews(), identities.SelfSubjectReviews()
	return c, nil
}

// pathsIn returns the absolute paths of files in a kubeconfig.
func pathsIn(config *clientcmdapi.Config) (paths []string) {
	for _, of := range config.Clusters {
		paths = append(paths, of.CertificateAuthority)
	}
	for _, of := range config.AuthInfos {
		paths = append(paths, of.ClientCertificate, of.ClientKey, of.TokenFile)
		if of.Exec != nil {
			paths = append(paths, of.Exec.Command)
		}
	}
	return absolute(paths)
}

// absolute returns the absolute ones of some paths. Others could be words of a sentence.
func absolute(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return !filepath.IsAbs(path) })
}

// hide returns what replaces the address of the API server and paths in a text.
func hide(host string, paths []string) *strings.Replacer {
	var replaced []string
	add := func(text, by string) {
		if text != "" && !slices.Contains(replaced, text) {
			replaced = append(replaced, text, by)
		}
	}
	const server = "(API server)"
	add(host, server)
	if address, err := url.Parse(host); err == nil {
		add(address.Host, server)
		if strings.ContainsAny(address.Hostname(), ".:") {
			add(address.Hostname(), server) // Another name could be a word of a sentence.
		}
	}
	for _, path := range paths {
		add(path, "(kubeconfig)")
	}
	return strings.NewReplacer(replaced...)
}

// user returns the name of the user, empty if the server does not say it.
func (c *cluster) user(ctx context.Context) string {
	found, err := c.identities.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return found.Status.UserInfo.Username
}

// connection matches the addresses in an error of a connection.
var connection = regexp.MustCompile(`\b(dial|read|write) (tcp|udp)(: lookup)? \S+( on \S+)?`)

// wholeObject matches the part of an error that repeats the object of a patch, before it says what is wrong with it.
var wholeObject = regexp.MustCompile(`(?s) "" is invalid: patch: Invalid value: "\{.*\}": `)

// text returns a text of a command or the server as the page may show it.
func (c *cluster) text(of string) string {
	of = printable.Text(wholeObject.ReplaceAllString(of, " is invalid: "))
	return c.hidden.Replace(connection.ReplaceAllString(of, "$1 $2:"))
}

const (
	unreachable   = "The API server does not respond"
	unreachableDo = "kubectl cluster-info shows whether kubectl reaches it"
)

// connectionError returns what the page shows of an error of the connection to the API server, and an empty text for another error. The
// error has the addresses of both ends.
func (c *cluster) connectionError(err error) string {
	var failed *url.Error
	var broken *net.OpError
	if !errors.As(err, &failed) && !errors.As(err, &broken) || cli.IsOver(err) {
		return ""
	}
	if isSilent(err) {
		return unreachable
	}
	if other := (x509.HostnameError{}); errors.As(err, &other) {
		return "The certificate of the API server is for another name" // The error has the addresses in the certificate.
	}
	for failed = nil; errors.As(err, &failed); {
		err = failed.Err
	}
	return "The connection to the API server failed: " + c.text(err.Error())
}

// isSilent reports whether a connection failed because the other end does not respond.
func isSilent(err error) bool {
	var broken *net.OpError
	if errors.As(err, &broken) { // Its operation may also be that of a proxy, or an alert of TLS.
		return slices.Contains([]string{"dial", "read", "write"}, broken.Op)
	}
	var timed net.Error
	return errors.As(err, &timed) && timed.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// failure returns what the page shows of the error of a command, which explains itself.
func (c *cluster) failure(err error) string {
	if text := c.connectionError(err); text != "" {
		return text + "\n" + unreachableDo
	}
	return c.text(err.Error())
}

// explain returns what the page shows of an error: the message of the server, and what the user can do about it.
func (c *cluster) explain(ctx context.Context, err error) (text, do string) {
	if text := c.connectionError(err); text != "" {
		return text, unreachableDo
	}
	do, err = cli.HintOf(cli.Explain(ctx, c.config, err))
	return c.text(err.Error()), c.text(do)
}

// sentence returns what a stream says of an error: for a missing permission, which one it is, rather than the message of the server.
func (c *cluster) sentence(ctx context.Context, err error) string {
	text, do := c.explain(ctx, err)
	switch {
	case do == "":
		return text
	case apierrors.IsForbidden(err):
		return do
	}
	return text + "\n" + do
}

// refusal returns the response for an error.
func (c *cluster) refusal(ctx context.Context, err error) *refusal {
	if known := (*refusal)(nil); errors.As(err, &known) {
		return known
	}
	code := http.StatusBadGateway
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		if of := int(status.Status().Code); of >= http.StatusBadRequest && of != http.StatusUnauthorized {
			code = of // 401 is for the end of the login of the page.
		}
	}
	text, do := c.explain(ctx, err)
	return &refusal{code, text, do}
}
