// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/kube/buildversion"
)

const serveExample = `  # In a Pod, behind a proxy that adds the user's token to each request
  kubectl-slipstream dashboard serve --url=https://slipstream.example.com \
    --server=https://kubernetes.default.svc --certificate-authority=ca.crt \
    --tls-cert-file=tls.crt --tls-private-key-file=tls.key`

// healthPath responds to probes of the kubelet.
const healthPath = "/healthz"

// Authentications of the users of a hosted page.
const byToken, byFrontProxy = "Token", "FrontProxy"

// hosted is the command dashboard serve.
type hosted struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	plugin Plugin

	url, listen       string
	logoutURL         string
	certFile, keyFile string
	authentication    string
	headers           requestHeaders
	groups            []string
	maxSessions       int
}

// newServe returns the command that serves the page to all users whom a proxy authenticates.
func newServe(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, plugin Plugin) *cobra.Command {
	h := &hosted{IOStreams: streams, config: config, plugin: plugin}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the page to many users, behind a proxy that authenticates them",
		Long: "Serve the page over HTTPS to all users whom a proxy in front of it authenticates. It reads and does everything with the rights of the\n" +
			"user of each request, and only shows the cluster until that user allows changes. The chart of Slipstream runs it.\n\n" +
			"With --authentication=Token, each request has the token of its user for the API server, and the page needs no rights. With\n" +
			"FrontProxy, the proxy has a client certificate and names the user in headers, and the page impersonates that user.",
		Example: serveExample,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return h.run(command.Context()) },
	}
	h.addFlags(command.Flags())
	return command
}

func (h *hosted) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&h.url, "url", "", "The address of the page in browsers, such as https://slipstream.example.com. The proxy must not change the header Host.")
	flags.StringVar(&h.logoutURL, "logout-url", "", "Where the browser goes after a user has logged out, such as /oauth2/sign_out of oauth2-proxy, which then ends the login of the proxy.")
	flags.StringVar(&h.listen, "listen", ":8443", "The address on which HTTPS is served.")
	flags.StringVar(&h.certFile, "tls-cert-file", "", "The file with the certificate for HTTPS. It is read again when it changes.")
	flags.StringVar(&h.keyFile, "tls-private-key-file", "", "The file with the key of the certificate.")
	flags.StringVar(&h.authentication, "authentication", byToken, "How a request names its user: Token or FrontProxy.")
	flags.IntVar(&h.maxSessions, "max-sessions", 256, "The number of tabs at the same time. One user has at most 8.")
	flags.StringSliceVar(&h.groups, "impersonated-groups", nil, "With FrontProxy: the groups that are impersonated, without the others of a user. Empty: all.")
	h.headers.addFlags(flags)
}

// check refuses wrong flags.
func (h *hosted) check() error {
	if !strings.HasSuffix(h.url, "/") {
		h.url += "/"
	}
	address, err := url.Parse(h.url)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.Path != "/" || address.User != nil ||
		strings.ContainsAny(h.url, "?#") || address.Host != strings.ToLower(address.Host) {
		return fmt.Errorf("--url: %q is not an address of the form https://NAME[:PORT] in lower case", strings.TrimSuffix(h.url, "/"))
	}
	h.url = "https://" + strings.TrimSuffix(address.Host, ":443")
	for flag, value := range map[string]string{"tls-cert-file": h.certFile, "tls-private-key-file": h.keyFile} {
		if value == "" {
			return fmt.Errorf("--%s is missing", flag)
		}
	}
	switch logout, err := url.Parse(h.logoutURL); {
	case err != nil || logout.Scheme != "https" && !strings.HasPrefix(h.logoutURL, "/") && h.logoutURL != "":
		return fmt.Errorf("--logout-url: %q begins neither with / nor with https://", h.logoutURL)
	case h.authentication != byToken && h.authentication != byFrontProxy:
		return fmt.Errorf("--authentication: %q is neither %s nor %s", h.authentication, byToken, byFrontProxy)
	case h.authentication == byFrontProxy && h.headers.caFile == "":
		return errors.New("--requestheader-client-ca-file is missing: with FrontProxy, others than the proxy could name any user")
	case h.authentication == byFrontProxy && len(h.headers.names) == 0:
		return errors.New("--requestheader-username-headers is missing: without it, no user can log in")
	case slices.ContainsFunc(h.groups, isOfSystem):
		return errors.New("--impersonated-groups: groups of Kubernetes itself, system:..., are not impersonated")
	case h.authentication == byToken && len(h.groups) > 0:
		return fmt.Errorf("--impersonated-groups has a meaning only with --authentication=%s", byFrontProxy)
	case h.maxSessions < 1:
		return fmt.Errorf("--max-sessions: %d is less than 1", h.maxSessions)
	}
	return nil
}

func (h *hosted) run(ctx context.Context) error {
	if err := h.check(); err != nil {
		return err
	}
	base, err := h.config.ToRESTConfig()
	if err != nil {
		return err
	}
	if h.config.Namespace != nil && *h.config.Namespace != "" {
		return errors.New("--namespace has no meaning here: each user chooses a namespace on the page")
	}
	if *h.config.APIServer == "" && !rest.IsConfigTransportTLS(*base) {
		return errors.New("--server is missing: the address of the API server, with https")
	}
	if !rest.IsConfigTransportTLS(*base) {
		return fmt.Errorf("--server: %s is not an address with https, and the tokens of users are secret", base.Host)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var all background
	defer all.wait()
	defer cancel(nil)
	certificates, err := h.certificates(ctx, &all)
	if err != nil {
		return err
	}
	logins, err := h.logins(ctx, &all, base)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.listen)
	if err != nil {
		return fmt.Errorf("listen for the proxy: %w", err)
	}
	_, _ = fmt.Fprintf(h.Out, "Serving %s on %s\n", h.url, listener.Addr()) // Nothing depends on it.
	err = serve(ctx, func(server *http.Server, listener net.Listener) error {
		server.TLSConfig = certificates
		return server.ServeTLS(listener, "", "")
	}, listener, health(&server{
		guard: newGuard(h.url), sessions: &sessions{most: h.maxSessions, mostOfUser: maxOfUser}, logins: logins, used: func() {},
	}))
	if errors.Is(err, context.Canceled) {
		return nil // It was stopped.
	}
	return err
}

// health returns a handler that responds to probes, and leaves all other requests to page.
func health(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != healthPath {
			page.ServeHTTP(w, r)
			return
		}
		setHeaders(w.Header())
		_, _ = w.Write([]byte("ok")) // The kubelet repeats its probe.
	})
}

// certificates returns the configuration of HTTPS, which follows the files of the certificate. A client may have a certificate, too.
func (h *hosted) certificates(ctx context.Context, all *background) (*tls.Config, error) {
	content, err := dynamiccertificates.NewDynamicServingContentFromFiles("page", h.certFile, h.keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the page: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2", "http/1.1"}}
	controller := dynamiccertificates.NewDynamicServingCertificateController(config, nil, content, nil, nil)
	content.AddListener(controller)
	if err := controller.RunOnce(); err != nil {
		return nil, fmt.Errorf("read the certificate of the page: %w", err)
	}
	all.start(func() { content.Run(ctx, 1) })
	all.start(func() { controller.Run(1, ctx.Done()) })
	config = config.Clone()
	config.GetConfigForClient = controller.GetConfigForClient
	return config, nil
}

// logins returns who may open sessions.
func (h *hosted) logins(ctx context.Context, all *background, base *rest.Config) (*proxied, error) {
	p := &proxied{
		origin: h.url, logoutURL: h.logoutURL, plugin: h.plugin,
		paths: absolute([]string{h.certFile, h.keyFile, h.headers.caFile, base.CAFile, base.BearerTokenFile}),
		follow: func(of *cluster, namespace string) func(*hub) (stop func()) {
			return following(ctx, all, of, namespace)
		},
	}
	verified, err := h.headers.verified(ctx, all)
	if err != nil {
		return nil, err
	}
	base = rest.CopyConfig(base)
	base.UserAgent = "slipstream-dashboard/" + strings.TrimPrefix(buildversion.Version(), "v")
	base.WarningHandler = rest.NoWarnings{}
	if h.authentication == byFrontProxy {
		p.users = &headerUsers{base: base, headers: verified(h.headers.authenticator()), names: h.headers.names, groups: h.groups}
		return p, nil
	}
	p.users = &tokenUsers{base: rest.AnonymousClientConfig(base), proxy: verified(authenticateAny)}
	return p, nil
}
