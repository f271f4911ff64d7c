// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/artifacts/attribution"
)

// Files that webhook-config writes.
const (
	auditAuthority    = "audit-ca.crt"
	auditAuthorityKey = "audit-ca.key"
	auditClient       = "audit-client.crt"
	auditClientKey    = "audit-client.key"
	serverAuthority   = "slipstream-ca.crt"
	auditPolicy       = "audit-policy.yaml"
	auditKubeconfig   = "audit-webhook-kubeconfig.yaml"
	segmentFile       = "segment"
	directAdmission   = "validating-webhook-configuration-direct.yaml"
)

// Values in artifacts/attribution that differ between clusters.
const (
	nodeFolder    = "/etc/kubernetes/slipstream"
	serviceDNS    = "slipstream.slipstream-system.svc"
	serviceFields = "namespace: slipstream-system\n      name: slipstream\n      port: 443"
)

const webhookConfigExample = `  # Write the files for the audit webhook of kube-apiserver to a folder, and print what to do with them
  kubectl slipstream webhook-config --dir slipstream-audit

  # A year later: a new certificate for kube-apiserver, from the same authority
  kubectl slipstream webhook-config --dir slipstream-audit --renew`

// webhookConfig is the command webhook-config.
type webhookConfig struct {
	genericiooptions.IOStreams
	config                genericclioptions.RESTClientGetter
	dir, address, nodeDir string
	days                  int
	direct, renew, force  bool
}

func newWebhookConfig(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	w := &webhookConfig{IOStreams: streams, config: config}
	command := &cobra.Command{
		Use:   "webhook-config --dir FOLDER",
		Short: "Write the files and certificates with which kube-apiserver reports the authors of changes",
		Long: "Write the files for the audit webhook of kube-apiserver to a folder: the policy, the kubeconfig, a client certificate with its\n" +
			"authority, and the authority of the server's certificate. Prints the flags and Helm values that use them. The cluster is only\n" +
			"read, with your rights: the APIService and the Service of the server. Keys are readable for you only. Existing files are not\n" +
			"replaced without --force; --renew replaces the client certificate and its key.",
		Example: webhookConfigExample,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return w.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringVar(&w.dir, "dir", "", "Folder for the files. It is created if it is missing.")
	flags.StringVar(&w.address, "address", "", "HOST:PORT at which control-plane nodes reach the server. Defaults to the cluster IP of its Service.")
	flags.StringVar(&w.nodeDir, "node-dir", nodeFolder, "Folder of the files on the control-plane nodes.")
	flags.IntVar(&w.days, "days", 365, "Validity of the client certificate, 1 to 3650 days.")
	flags.BoolVar(&w.direct, "direct-admission", false, "Also write the admission webhook that does not use the aggregator, and its secret.")
	flags.BoolVar(&w.renew, "renew", false, "Write only a new client certificate, signed by the authority in the folder. The old one is replaced.")
	flags.BoolVar(&w.force, "force", false, "Replace existing files, including the authority.")
	return command
}

// validate checks the flags.
func (w *webhookConfig) validate() error {
	const longest = 3650
	switch {
	case w.dir == "":
		return errors.New("--dir is missing: give a folder for the files")
	case w.days < 1 || w.days > longest:
		return fmt.Errorf("--days is %d: it is 1 to %d", w.days, longest)
	case w.renew && (w.force || w.direct):
		return errors.New("--renew writes only a client certificate: leave out --force and --direct-admission")
	case !path.IsAbs(w.nodeDir) || strings.ContainsAny(w.nodeDir, ":#'\"\n"):
		return fmt.Errorf("--node-dir is %q: it is an absolute path without colons, quotes and #", w.nodeDir)
	case w.address != "" && !isAddress(w.address):
		return fmt.Errorf("--address is %q: it is HOST:PORT", w.address)
	}
	return nil
}

// isAddress reports whether a text is HOST:PORT, and can be written to a kubeconfig.
func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	return err == nil && host != "" && port != "" && !strings.ContainsAny(text, "/#'\"\n ")
}

func (w *webhookConfig) run(ctx context.Context) error {
	if err := w.validate(); err != nil {
		return err
	}
	if w.renew {
		return w.renewClient()
	}
	client, err := w.client()
	if err != nil {
		return err
	}
	server, err := installed(ctx, client)
	if err != nil {
		return err
	}
	address, err := w.addressOf(ctx, client, server)
	if err != nil {
		return err
	}
	files, err := w.auditFiles(server, address)
	if err != nil {
		return err
	}
	if w.direct {
		more, err := admissionFiles(server)
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	if err := writeFiles(w.dir, files, w.force); err != nil {
		return err
	}
	_, err = fmt.Fprint(w.Out, w.nextSteps(server))
	return err
}

// renewClient replaces the client certificate.
func (w *webhookConfig) renewClient() error {
	certificate, err := os.ReadFile(filepath.Join(w.dir, auditAuthority))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(w.dir, auditAuthorityKey))
	if err != nil {
		return err
	}
	authority, err := parseAuthority(pair{certificate, key})
	if err != nil {
		return err
	}
	files, err := w.clientFiles(authority)
	if err != nil {
		return err
	}
	if err := writeFiles(w.dir, files, true); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.Out, "Copy %s and %s to %s on every control-plane node, both at the same time.\n"+
		"kube-apiserver reads them within five minutes, without a restart.\n", auditClient, auditClientKey, w.nodeDir)
	return err
}

// client returns the client that reads the cluster.
func (w *webhookConfig) client() (dynamic.Interface, error) {
	config, err := w.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// installed reads how the server is registered. It returns an error if no Service or no authority is known yet.
func installed(ctx context.Context, client dynamic.Interface) (*registration, error) {
	server, err := readRegistration(ctx, client)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read how the server is registered: %w", err)
	case server.service == "":
		return nil, fmt.Errorf("the APIService %s names no Service: install the server first", apiServiceName)
	case len(bytes.TrimSpace(server.bundle)) == 0:
		return nil, fmt.Errorf("the APIService %s has no caBundle yet: the server writes it when it starts", apiServiceName)
	}
	return server, nil
}

// addressOf returns the HOST:PORT at which control-plane nodes reach the server: --address, or the cluster IP of its Service.
func (w *webhookConfig) addressOf(ctx context.Context, client dynamic.Interface, server *registration) (string, error) {
	if w.address != "" {
		return w.address, nil
	}
	host, err := server.clusterIP(ctx, client)
	if err != nil {
		return "", fmt.Errorf("find the address of the server: %w", err)
	}
	return net.JoinHostPort(host, strconv.FormatInt(server.port, 10)), nil
}

// auditFiles returns the files for the audit webhook of a server with an address.
func (w *webhookConfig) auditFiles(server *registration, address string) ([]outputFile, error) {
	authority, err := newAuthority(time.Now())
	if err != nil {
		return nil, err
	}
	files, err := w.clientFiles(authority)
	if err != nil {
		return nil, err
	}
	policy, err := artifact(auditPolicy)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := artifact(auditKubeconfig,
		"${ADDRESS}", address, serviceDNS, server.service+"."+server.namespace+".svc", nodeFolder, w.nodeDir)
	if err != nil {
		return nil, err
	}
	return append(files,
		outputFile{name: auditAuthority, content: authority.certificate},
		outputFile{name: auditAuthorityKey, content: authority.key, private: true},
		outputFile{name: serverAuthority, content: server.bundle},
		outputFile{name: auditPolicy, content: policy},
		outputFile{name: auditKubeconfig, content: kubeconfig},
	), nil
}

// clientFiles returns a new client certificate and its key.
func (w *webhookConfig) clientFiles(authority *authority) ([]outputFile, error) {
	const day = 24 * time.Hour
	client, err := authority.client(auditUser, time.Now(), time.Duration(w.days)*day)
	if err != nil {
		return nil, err
	}
	return []outputFile{{name: auditClient, content: client.certificate}, {name: auditClientKey, content: client.key, private: true}}, nil
}

// admissionFiles returns the files for the admission webhook that does not use the aggregator. Its path has a secret.
func admissionFiles(server *registration) ([]outputFile, error) {
	const size = 32
	random := make([]byte, size)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("create the secret of admission reviews: %w", err)
	}
	segment := hex.EncodeToString(random)
	fields := fmt.Sprintf("namespace: %s\n      name: %s\n      port: %d", server.namespace, server.service, server.port)
	manifest, err := artifact(directAdmission,
		"${SEGMENT}", segment, "${CA_BUNDLE}", base64.StdEncoding.EncodeToString(server.bundle), serviceFields, fields)
	if err != nil {
		return nil, err
	}
	return []outputFile{
		{name: segmentFile, content: []byte(segment + "\n"), private: true}, {name: directAdmission, content: manifest, private: true},
	}, nil
}

// artifact returns a file of artifacts/attribution with replacements. If there are any, it is without its first comment, which says
// what to replace.
func artifact(name string, replacements ...string) ([]byte, error) {
	content, err := fs.ReadFile(attribution.Files, name)
	if err != nil {
		return nil, fmt.Errorf("read a file of the plugin: %w", err)
	}
	text := string(content)
	if at := strings.Index(text, "\napiVersion:"); at >= 0 && len(replacements) > 0 {
		text = text[at+1:]
	}
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			return nil, fmt.Errorf("%s of the plugin lacks %q", name, replacements[i])
		}
	}
	return []byte(strings.NewReplacer(replacements...).Replace(text)), nil
}
