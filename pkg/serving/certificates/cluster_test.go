// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	servingcertificates "github.com/configbutler/slipstream/pkg/serving/certificates"
)

const (
	apiServicePath = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.configbutler.ai"
	webhookPath    = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/slipstream-attribution"
	secretPath     = "/api/v1/namespaces/slipstream-system/secrets/slipstream-ca"

	certificateLifetime = 12 * time.Hour
	authorityLifetime   = 72 * time.Hour
)

var service = types.NamespacedName{Namespace: "slipstream-system", Name: "slipstream"}

type object = map[string]any

// cluster is an API server for single objects, which refuses to overwrite what has changed meanwhile.
type cluster struct {
	clock *clocktesting.FakeClock

	mutex   sync.Mutex
	objects map[string][]byte
	version int
	// refuse returns the status with which a request is refused, or 0. One that is lost is carried out before.
	refuse func(method, path string) (status int, lost bool)
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{clock: clocktesting.NewFakeClock(time.Now()), objects: map[string][]byte{}}
	c.put(t, apiServicePath, apiService(nil))
	c.put(t, webhookPath, webhooks())
	return c
}

// apiService is the one of the kinds, with changes to its spec.
func apiService(changes object) object {
	spec := object{"group": "configbutler.ai", "version": "v1alpha1", "service": object{"namespace": service.Namespace, "name": service.Name}}
	for key, value := range changes {
		spec[key] = value
	}
	return object{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": object{"name": servingcertificates.APIServiceName}, "spec": spec,
	}
}

// webhooks are one behind the aggregator and one of the server's own.
func webhooks() object {
	client := func(namespace, name string) object {
		return object{"name": "a.configbutler.ai", "clientConfig": object{"service": object{"namespace": namespace, "name": name}}}
	}
	return object{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": object{"name": servingcertificates.WebhookConfigurationName},
		"webhooks": []any{client("default", "kubernetes"), client(service.Namespace, service.Name)},
	}
}

// RoundTrip gets, creates and updates.
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	status, lost := 0, false
	if c.refuse != nil {
		status, lost = c.refuse(r.Method, r.URL.Path)
	}
	answer, code := []byte(nil), status
	if status == 0 || lost {
		answer, code = c.answer(r)
	}
	if status != 0 {
		code = status
	}
	if code >= http.StatusBadRequest {
		reason := map[int]string{404: "NotFound", 409: "Conflict", 403: "Forbidden"}[code]
		if r.Method == http.MethodPost && code == http.StatusConflict {
			reason = "AlreadyExists"
		}
		answer = fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"refused"}`, reason,
			code)
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer)), Request: r,
	}, nil
}

func (c *cluster) answer(r *http.Request) (answer []byte, code int) {
	where := r.URL.Path
	var sent object
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			return nil, http.StatusBadRequest
		}
	}
	if r.Method == http.MethodPost {
		where = path.Join(where, sent["metadata"].(object)["name"].(string))
	}
	stored, exists := c.objects[where]
	switch {
	case r.Method == http.MethodPost && exists:
		return nil, http.StatusConflict
	case r.Method != http.MethodPost && !exists:
		return nil, http.StatusNotFound
	case r.Method == http.MethodGet:
		return stored, http.StatusOK
	case exists && versionOf(stored) != sent["metadata"].(object)["resourceVersion"]:
		return nil, http.StatusConflict
	}
	return c.store(where, sent), http.StatusOK
}

func versionOf(stored []byte) any {
	var o object
	_ = json.Unmarshal(stored, &o)
	return o["metadata"].(object)["resourceVersion"]
}

func (c *cluster) store(where string, o object) []byte {
	c.version++
	o["metadata"].(object)["resourceVersion"] = strconv.Itoa(c.version)
	c.objects[where], _ = json.Marshal(o)
	return c.objects[where]
}

// put replaces an object by hand; nil removes it.
func (c *cluster) put(t *testing.T, where string, o object) {
	t.Helper()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.objects, where)
	if o != nil {
		c.store(where, o)
	}
}

// get returns an object, nil if there is none.
func (c *cluster) get(t *testing.T, where string) object {
	t.Helper()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var o object
	if stored, exists := c.objects[where]; exists {
		if err := json.Unmarshal(stored, &o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// setRefuse decides which requests are refused from now on.
func (c *cluster) setRefuse(refuse func(method, path string) (status int, lost bool)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.refuse = refuse
}

// putSecret replaces the Secret of the authority by hand.
func (c *cluster) putSecret(t *testing.T, certificate, key []byte) {
	t.Helper()
	c.put(t, secretPath, object{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
		"metadata": object{"name": "slipstream-ca", "namespace": service.Namespace},
		"data": object{
			"tls.crt": base64.StdEncoding.EncodeToString(certificate), "tls.key": base64.StdEncoding.EncodeToString(key),
		},
	})
}

// secret returns an entry of the Secret.
func (c *cluster) secret(t *testing.T, key string) string {
	t.Helper()
	data, _ := c.get(t, secretPath)["data"].(object)
	encoded, _ := data[key].(string)
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bundles are those of the APIService and of the webhook of the server's own.
func (c *cluster) bundles(t *testing.T) [2]string {
	t.Helper()
	spec := c.get(t, apiServicePath)["spec"].(object)
	webhook := c.get(t, webhookPath)["webhooks"].([]any)[1].(object)["clientConfig"].(object)
	var found [2]string
	for index, config := range []object{spec, webhook} {
		encoded, _ := config["caBundle"].(string)
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		found[index] = string(text)
	}
	return found
}

// replica is one server.
type replica struct {
	controller *servingcertificates.Controller
	leader     *servingcertificates.Leader
	// covered says that clients have trusted it once.
	covered bool
}

// newReplica is one that has not looked at anything.
func (c *cluster) newReplica(t *testing.T, source servingcertificates.Source) *replica {
	t.Helper()
	return newReplica(c.config(t, source))
}

func newReplica(config servingcertificates.Config) *replica {
	controller := servingcertificates.New(config)
	return &replica{controller: controller, leader: servingcertificates.NewLeader(controller)}
}

// config is that of a replica whose certificates are of a source, or of an authority of its own.
func (c *cluster) config(t *testing.T, source servingcertificates.Source) servingcertificates.Config {
	t.Helper()
	config := &rest.Config{Host: "http://cluster", Transport: c, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	if source == nil {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		source = &servingcertificates.OwnAuthority{
			Client: client.CoreV1().Secrets(service.Namespace), Name: "slipstream-ca", Names: servingcertificates.Names(service),
			CertificateLifetime: certificateLifetime, AuthorityLifetime: authorityLifetime,
		}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return servingcertificates.Config{Source: source, Client: client, Service: service, Clock: c.clock}
}

// start is a replica that serves.
func (c *cluster) start(t *testing.T, source servingcertificates.Source) *replica {
	t.Helper()
	r := c.newReplica(t, source)
	if err := r.controller.RunOnce(quiet(t)); err != nil {
		t.Fatal(err)
	}
	return r
}

// quiet is a test's context without a log.
func quiet(t *testing.T) context.Context {
	t.Helper()
	return klog.NewContext(t.Context(), ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig()))
}

// leaf is what a replica shows.
func (r *replica) leaf(t *testing.T) *x509.Certificate {
	t.Helper()
	certificate, key := r.controller.CurrentCertKeyContent()
	block, _ := pem.Decode(certificate)
	if block == nil || len(key) == 0 {
		t.Fatal("nothing is shown")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// trusted says why a client with a bundle would refuse a replica.
func (r *replica) trusted(t *testing.T, bundle string, at time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(bundle))
	_, err := r.leaf(t).Verify(x509.VerifyOptions{
		Roots: roots, DNSName: servingcertificates.ServerName(service),
		CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

// issuer is an authority of a user.
type issuer struct {
	certificate  *x509.Certificate
	private      crypto.PrivateKey
	certificates []byte
	key          []byte
}

// newIssuer makes an authority that lives for some time.
func newIssuer(t *testing.T, now time.Time, lifetime time.Duration) *issuer {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "a user's own"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return sign(t, template, nil)
}

// server signs a certificate for a name or an address.
func (i *issuer) server(t *testing.T, name string) *issuer {
	t.Helper()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: i.certificate.NotBefore, NotAfter: i.certificate.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if address := net.ParseIP(name); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{name}
	}
	return sign(t, template, i)
}

func sign(t *testing.T, template *x509.Certificate, by *issuer) *issuer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<60))
	parent, signer := template, crypto.PrivateKey(private)
	if by != nil {
		parent, signer = by.certificate, by.private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var text, key bytes.Buffer
	_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	_ = pem.Encode(&key, &pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	return &issuer{certificate: certificate, private: private, certificates: text.Bytes(), key: key.Bytes()}
}
