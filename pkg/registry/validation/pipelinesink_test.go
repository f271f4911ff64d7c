// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func TestPipelineSinks(t *testing.T) {
	checkPipelines(t, []change[pipe]{
		{name: "no sink", do: func(p pipe) { p.Spec.Sinks = nil }, path: "spec.sinks", says: "at least one sink"},
		{
			name: "too many sinks", do: func(p pipe) {
				for i := range 14 {
					sink := p.Spec.Sinks[1]
					sink.Name = fmt.Sprintf("sink-%d", i)
					p.Spec.Sinks = append(p.Spec.Sinks, sink)
				}
			},
			path: "spec.sinks", says: "at most 16",
		},
		{name: "a sink without a name", do: func(p pipe) { p.Spec.Sinks[1].Name = "" }, path: "spec.sinks[1].name", says: "such as assistant"},
		{name: "a sink whose name fits no label", do: func(p pipe) { p.Spec.Sinks[1].Name = "A" }, path: "spec.sinks[1].name", says: "RFC 1123"},
		{name: "a sink twice", do: func(p pipe) { p.Spec.Sinks[1].Name = "assistant" }, path: "spec.sinks[1].name", says: "Duplicate"},
		{name: "a sink that is none", do: func(p pipe) { p.Spec.Sinks[1].HTTP = nil }, path: "spec.sinks[1].http", says: "http or job"},
		{
			name: "a sink that is both", do: func(p pipe) { p.Spec.Sinks[1].Job = p.Spec.Sinks[2].Job },
			path: "spec.sinks[1].job", says: "must be absent when http is there",
		},
		{name: "an end of attempts", do: func(p pipe) { p.Spec.Sinks[0].Retry.MaxAttempts = ptr.To(int32(100)) }},
		{
			name: "more attempts than there may be", do: func(p pipe) { p.Spec.Sinks[0].Retry.MaxAttempts = ptr.To(int32(101)) },
			path: "spec.sinks[0].retry.maxAttempts", says: "at least 0 and at most 100",
		},
		{
			name: "no backoff", do: func(p pipe) { p.Spec.Sinks[0].Retry.Backoff = lasting(0) },
			path: "spec.sinks[0].retry.backoff", says: "at least 100ms and at most 1h",
		},
		{
			name: "a backoff beyond its bound", do: func(p pipe) { p.Spec.Sinks[0].Retry.Backoff = lasting(6 * time.Minute) },
			path: "spec.sinks[0].retry.maxBackoff", says: "at least 6m and at most 1h",
		},
	})
}

func TestHTTPSinks(t *testing.T) {
	url := func(url string) func(pipe) { return func(p pipe) { p.Spec.Sinks[0].HTTP.URL = url } }
	const path = "spec.sinks[0].http.url"
	proxy := func(namespace, name string) func(pipe) {
		return func(p pipe) {
			p.Spec.Sinks[0].HTTP.ProxySecretRef = &configbutler.NamespacedObjectReference{Namespace: namespace, Name: name}
		}
	}
	checkPipelines(t, []change[pipe]{
		{name: "an address of version 6", do: url("https://[2001:db8::1]:8443/base")},
		{name: "no URL", do: url(""), path: path, says: "http://host/path or https://host/path"},
		{name: "no scheme", do: url("dot-ai.example.com"), path: path, says: "http://host/path or https://host/path"},
		{name: "another scheme", do: url("ftp://dot-ai.example.com"), path: path, says: "http://host/path or https://host/path"},
		{name: "no URL at all", do: url("http://a b"), path: path, says: "spaces"},
		{name: "no host", do: url("https:///base"), path: path, says: "must name a host"},
		{name: "no host but a port", do: url("https://:443"), path: path, says: "must name a host"},
		{name: "a port that is none", do: url("https://a:99999"), path: path, says: "from 1 to 65535"},
		{name: "a query", do: url("https://a/b?c=d"), path: path, says: "query or a fragment"},
		{name: "an empty query", do: url("https://a/b?"), path: path, says: "query or a fragment"},
		{name: "a fragment", do: url("https://a/b#c"), path: path, says: "query or a fragment"},
		{name: "a URL without end", do: url("https://a/" + strings.Repeat("b", 2048)), path: path, says: "2048"},
		{
			name: "no format", do: func(p pipe) { p.Spec.Sinks[1].HTTP.Format = "" },
			path: "spec.sinks[1].http.format", says: "ClusterWhisperer, DotAI or CloudEvents",
		},
		{
			name: "an unknown format", do: func(p pipe) { p.Spec.Sinks[1].HTTP.Format = "Slack" },
			path: "spec.sinks[1].http.format", says: `"ClusterWhisperer", "DotAI", "CloudEvents"`,
		},
		{
			name: "a collection where there is none", do: func(p pipe) { p.Spec.Sinks[1].HTTP.Collection = "capabilities" },
			path: "spec.sinks[1].http.collection", says: "unless format is DotAI",
		},
		{
			name: "a collection that leaves the URL", do: func(p pipe) { p.Spec.Sinks[0].HTTP.Collection = "../secrets" },
			path: "spec.sinks[0].http.collection", says: "letters, digits",
		},
		{
			name: "a Secret without a namespace", do: func(p pipe) { p.Spec.Sinks[0].HTTP.SecretRef.Namespace = "" },
			path: "spec.sinks[0].http.secretRef.namespace", says: "Required",
		},
		{
			name: "a Secret without a name", do: func(p pipe) { p.Spec.Sinks[0].HTTP.SecretRef.Name = "" },
			path: "spec.sinks[0].http.secretRef.name", says: "Required",
		},
		{name: "a proxy", do: proxy("ops", "proxy")},
		{name: "a proxy without a namespace", do: proxy("", "proxy"), path: "spec.sinks[0].http.proxySecretRef.namespace", says: "Required"},
		{name: "a proxy without a name", do: proxy("ops", ""), path: "spec.sinks[0].http.proxySecretRef.name", says: "Required"},
		{
			name: "no time at all", do: func(p pipe) { p.Spec.Sinks[0].HTTP.Timeout = lasting(0) },
			path: "spec.sinks[0].http.timeout", says: "at least 1s and at most 5m",
		},
	})
}

// Credentials in a URL are refused, and not shown to those who read errors and audit logs.
func TestCredentialsInTheURLOfASink(t *testing.T) {
	for _, url := range []string{
		"https://jane:hush@a.example.com", "https://hush@a.example.com", "ftp://jane:hush@a", "http://jane:hush@%zz", "//jane:hush@a",
	} {
		pipeline := syncPipeline()
		pipeline.Spec.Sinks[0].HTTP.URL = url
		errs := validation.ValidateSyncPipeline(pipeline)
		change[pipe]{path: "spec.sinks[0].http.url", says: "must"}.check(t, errs)
		if strings.Contains(errs.ToAggregate().Error(), "hush") {
			t.Errorf("%v shows what was given as %s", errs, url)
		}
	}
}

func TestCABundles(t *testing.T) {
	certificate, key := selfSigned(t)
	bundle := func(bundle ...[]byte) func(pipe) {
		return func(p pipe) { p.Spec.Sinks[0].HTTP.CABundle = slices.Concat(bundle...) }
	}
	const path = "spec.sinks[0].http.caBundle"
	checkPipelines(t, []change[pipe]{
		{name: "one certificate", do: bundle(certificate)},
		{name: "two with remarks", do: bundle([]byte("# ours\n"), certificate, []byte("\n# theirs\n"), certificate, []byte("\n"))},
		{name: "nothing in PEM", do: bundle([]byte("hush")), path: path, says: "certificates in PEM"},
		{
			name: "a certificate that is cut off", do: bundle(certificate, certificate[:len(certificate)/2]),
			path: path, says: "certificates in PEM",
		},
		{
			name: "a certificate that is none", do: bundle(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hush")})),
			path: path, says: "certificate number 2",
		},
		{name: "a key", do: bundle(certificate, key), path: path, says: "private key"},
		{name: "a request", do: bundle(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST"})), path: path, says: "certificates in PEM"},
		{name: "too many", do: bundle(make([]byte, 1<<20+1)), path: path, says: "1048576"},
		{
			name: "a bundle without TLS", do: func(p pipe) {
				p.Spec.Sinks[0].HTTP.CABundle, p.Spec.Sinks[0].HTTP.URL = certificate, "http://a.example.com"
			},
			path: path, says: "unless url is an https URL",
		},
	})
}

// selfSigned is a certificate and its key.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	signed, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func TestJobSinks(t *testing.T) {
	template := func(old, changed string) func(pipe) {
		return func(p pipe) { p.Spec.Sinks[2].Job.Template.Raw = []byte(strings.Replace(jobTemplate, old, changed, 1)) }
	}
	const path = "spec.sinks[2].job.template"
	checkPipelines(t, []change[pipe]{
		{name: "Jobs at the same time", do: func(p pipe) { p.Spec.Sinks[2].Job.ConcurrencyPolicy = configbutler.PipelineConcurrencyAllow }},
		{
			name: "the account named again",
			do:   template(`"restartPolicy"`, `"serviceAccountName":"default","serviceAccount":"default","restartPolicy"`),
		},
		{name: "metadata as tools write it", do: template(`"metadata":{`, `"metadata":{"creationTimestamp":null,`)},
		{
			name: "no namespace", do: func(p pipe) { p.Spec.Sinks[2].Job.Namespace = "" },
			path: "spec.sinks[2].job.namespace", says: "that Jobs are made in",
		},
		{
			name: "a wrong namespace", do: func(p pipe) { p.Spec.Sinks[2].Job.Namespace = "A" },
			path: "spec.sinks[2].job.namespace", says: "RFC 1123",
		},
		{
			name: "a wrong account", do: func(p pipe) { p.Spec.Sinks[2].Job.ServiceAccountName = "a/b" },
			path: "spec.sinks[2].job.serviceAccountName", says: "RFC 1123",
		},
		{
			name: "an unknown policy", do: func(p pipe) { p.Spec.Sinks[2].Job.ConcurrencyPolicy = "Replace" },
			path: "spec.sinks[2].job.concurrencyPolicy", says: `"Forbid", "Allow"`,
		},
		{name: "no template", do: func(p pipe) { p.Spec.Sinks[2].Job.Template.Raw = nil }, path: path, says: "JobTemplateSpec of batch/v1"},
		{name: "null", do: template(jobTemplate, "null"), path: path, says: "JobTemplateSpec of batch/v1"},
		{name: "a list", do: template(jobTemplate, "[]"), path: path, says: "JobTemplateSpec of batch/v1"},
		{name: "a template without end", do: template("scan:1", strings.Repeat("a", 64<<10)), path: path, says: "65536"},
		{
			name: "a field that is none", do: template(`"image"`, `"imag"`),
			path: path + ".spec.template.spec.containers[0].imag", says: "unknown field",
		},
		{
			name: "a field twice", do: template(`"restartPolicy"`, `"restartPolicy":"Never","restartPolicy"`),
			path: path + ".spec.template.spec.restartPolicy", says: "duplicate field",
		},
		{name: "text where a number is", do: template(`:2`, `:"two"`), path: path + ".spec.backoffLimit", says: "of the type int32"},
		{
			name: "a Job and no template", do: template(`"metadata"`, `"apiVersion":"batch/v1","metadata"`),
			path: path + ".apiVersion", says: "unknown field",
		},
		{
			name: "a name for all Jobs", do: template(`"metadata":{`, `"metadata":{"name":"scan",`),
			path: path + ".metadata.name", says: "only labels and annotations",
		},
		{name: "a label that cannot be", do: template(`"app":"scan"`, `"app":"a b"`), path: path + ".metadata.labels", says: "a b"},
		{
			name: "another account", do: template(`"restartPolicy"`, `"serviceAccountName":"admin","restartPolicy"`),
			path: path + ".spec.template.spec.serviceAccountName", says: `absent or "default"`,
		},
		{
			name: "another account by its old name", do: template(`"restartPolicy"`, `"serviceAccount":"admin","restartPolicy"`),
			path: path + ".spec.template.spec.serviceAccount", says: `absent or "default"`,
		},
		{
			name: "Pods that always run", do: template(`"Never"`, `"Always"`),
			path: path + ".spec.template.spec.restartPolicy", says: `"Never", "OnFailure"`,
		},
		{
			name: "no containers", do: template(`"containers":[{"name":"scan","image":"example.com/scan:1"}]`, `"containers":[]`),
			path: path + ".spec.template.spec.containers", says: "at least one",
		},
		{
			name: "Pods of others", do: template(`"backoffLimit":2`, `"selector":{"matchLabels":{"a":"b"}}`),
			path: path + ".spec.selector", says: "its own Pods",
		},
		{
			name: "Pods of others by will", do: template(`"backoffLimit":2`, `"manualSelector":true`),
			path: path + ".spec.manualSelector", says: "its own Pods",
		},
		{
			name: "the batch's volume", do: template(`"restartPolicy"`, `"volumes":[{"name":"slipstream-batch"}],"restartPolicy"`),
			path: path + ".spec.template.spec.volumes[0].name", says: "another name",
		},
		{
			name: "the batch's folder", do: template(`"image"`, `"volumeMounts":[{"name":"a","mountPath":"/etc/slipstream/batch/"}],"image"`),
			path: path + ".spec.template.spec.containers[0].volumeMounts[0].mountPath", says: "another folder",
		},
		{
			name: "the batch's variable",
			do:   template(`"containers"`, `"initContainers":[{"name":"a","env":[{"name":"SLIPSTREAM_BATCH"}]}],"containers"`),
			path: path + ".spec.template.spec.initContainers[0].env[0].name", says: "another name",
		},
	})
}
