// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// objects reads the documents of a text.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		converted, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(converted, &o.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// lines writes references, one referrer a line.
func lines(found []references.Reference) []string {
	var out []string
	for _, r := range found {
		for _, by := range r.Referrers {
			line := fmt.Sprintf("%s %s: %s %s %s", r.Type, r.Name, by.Kind, by.Name, by.Path)
			if by.Keys != nil {
				line += fmt.Sprintf(" keys %v", by.Keys)
			}
			if by.Optional {
				line += " optional"
			}
			out = append(out, line)
		}
	}
	return out
}

// checkPaths expects each path to lead to something that names the target, or has labels.
func checkPaths(t *testing.T, found []references.Reference, from []*unstructured.Unstructured) {
	t.Helper()
	for _, r := range found {
		for _, by := range r.Referrers {
			i := slices.IndexFunc(from, func(o *unstructured.Unstructured) bool { return o.GetKind() == by.Kind && o.GetName() == by.Name })
			value, ok := by.Path.Lookup(from[i].Object)
			if fields, isMap := value.(map[string]any); isMap {
				names := []any{fields["secretName"], fields["claimName"], fields["name"]}
				value = names[max(0, slices.IndexFunc(names, func(name any) bool { return name != nil }))]
			}
			isDefault := !ok && r.Type == references.ServiceAccount && r.Name == "default"
			isLabels := r.Type == references.Service && strings.HasSuffix(by.Path.String(), "/metadata/labels")
			if value != r.Name && !isDefault && !isLabels {
				t.Errorf("%s leads to %v, want %s", by.Path, value, r.Name)
			}
		}
	}
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:
      serviceAccountName: web
      serviceAccount: web
      subdomain: peers
      imagePullSecrets: [{name: registry}]
      initContainers:
      - name: migrate
        envFrom: [{secretRef: {name: database}}]
      containers:
      - name: web
        envFrom: [{prefix: A_, configMapRef: {name: settings}}, {configMapRef: {name: more, optional: true}}]
        env:
        - {name: PLAIN, value: text}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: LEVEL, valueFrom: {configMapKeyRef: {name: levels, key: level}}}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: database, key: password, optional: true}}}
      ephemeralContainers:
      - name: debug
        env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: debug, key: token}}}]
      volumes:
      - {name: all, configMap: {name: files}}
      - {name: some, secret: {secretName: keys, optional: true, items: [{key: tls.key, path: k}, {key: ca.crt, path: c}]}}
      - name: both
        projected:
          sources:
          - serviceAccountToken: {path: token}
          - configMap: {name: files, items: [{key: a, path: a}], optional: true}
          - secret: {name: projected}
      - {name: csi, csi: {driver: d, nodePublishSecretRef: {name: csi}}}
      - {name: azure, azureFile: {secretName: azure, shareName: s}}
      - {name: data, persistentVolumeClaim: {claimName: data}}
      - {name: scratch, emptyDir: {}}
      - {name: copy, ephemeral: {volumeClaimTemplate: {spec: {
          dataSource: {kind: PersistentVolumeClaim, name: golden}, dataSourceRef: {kind: PersistentVolumeClaim, name: golden}}}}}
      - {name: snapshot, ephemeral: {volumeClaimTemplate: {spec: {
          dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: nightly}}}}}
`

func TestOf(t *testing.T) {
	const pod = "/spec/template/spec"
	tests := map[string]struct {
		objects string
		want    []string
	}{
		"a Deployment with everything": {web, []string{
			"ConfigMap files: Deployment web " + pod + "/volumes[name=all]/configMap",
			"ConfigMap files: Deployment web " + pod + "/volumes[name=both]/projected/sources/1/configMap keys [a] optional",
			"ConfigMap levels: Deployment web " + pod + "/containers[name=web]/env[name=LEVEL]/valueFrom/configMapKeyRef keys [level]",
			"ConfigMap more: Deployment web " + pod + "/containers[name=web]/envFrom/1/configMapRef optional",
			"ConfigMap settings: Deployment web " + pod + "/containers[name=web]/envFrom/0/configMapRef",
			"PersistentVolumeClaim data: Deployment web " + pod + "/volumes[name=data]/persistentVolumeClaim",
			"PersistentVolumeClaim golden: Deployment web " + pod + "/volumes[name=copy]/ephemeral/volumeClaimTemplate/spec/dataSource",
			"PersistentVolumeClaim golden: Deployment web " + pod + "/volumes[name=copy]/ephemeral/volumeClaimTemplate/spec/dataSourceRef",
			"Secret azure: Deployment web " + pod + "/volumes[name=azure]/azureFile/secretName",
			"Secret csi: Deployment web " + pod + "/volumes[name=csi]/csi/nodePublishSecretRef",
			"Secret database: Deployment web " + pod + "/containers[name=web]/env[name=PASSWORD]/valueFrom/secretKeyRef keys [password] optional",
			"Secret database: Deployment web " + pod + "/initContainers[name=migrate]/envFrom/0/secretRef",
			"Secret debug: Deployment web " + pod + "/ephemeralContainers[name=debug]/env[name=TOKEN]/valueFrom/secretKeyRef keys [token]",
			"Secret keys: Deployment web " + pod + "/volumes[name=some]/secret keys [ca.crt tls.key] optional",
			"Secret projected: Deployment web " + pod + "/volumes[name=both]/projected/sources/2/secret",
			"Secret registry: Deployment web " + pod + "/imagePullSecrets[name=registry]",
			"Service peers: Deployment web " + pod + "/subdomain optional",
			"ServiceAccount web: Deployment web " + pod + "/serviceAccount",
			"ServiceAccount web: Deployment web " + pod + "/serviceAccountName",
		}},
		"pods without an account": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {template: {spec: {containers: [{name: c}]}}}}`,
			[]string{"ServiceAccount default: DaemonSet d " + pod + "/serviceAccountName optional"},
		},
		"a StatefulSet": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: db,
  template: {spec: {serviceAccountName: a}},
  volumeClaimTemplates: [{metadata: {name: data}, spec: {dataSourceRef: {kind: PersistentVolumeClaim, name: golden}}},
    {metadata: {name: other}, spec: {dataSourceRef: {kind: PersistentVolumeClaim, name: far, namespace: away}}}]}}`,
			[]string{"PersistentVolumeClaim golden: StatefulSet db /spec/volumeClaimTemplates/0/spec/dataSourceRef",
				"Service db: StatefulSet db /spec/serviceName optional", "ServiceAccount a: StatefulSet db " + pod + "/serviceAccountName"}},
		"a CronJob": {
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {jobTemplate: {spec: {template: {spec: {serviceAccountName: a, ` +
				`volumes: [{name: v, secret: {secretName: s}}]}}}}}}`,
			[]string{
				"Secret s: CronJob c /spec/jobTemplate/spec/template/spec/volumes[name=v]/secret",
				"ServiceAccount a: CronJob c /spec/jobTemplate/spec/template/spec/serviceAccountName",
			},
		},
		"a Job": {`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {serviceAccountName: a}}}}`,
			[]string{"ServiceAccount a: Job j " + pod + "/serviceAccountName"}},
		"a ReplicaSet": {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {template: {spec: {serviceAccountName: a}}}}`,
			[]string{"ServiceAccount a: ReplicaSet r " + pod + "/serviceAccountName"}},
		"a ServiceAccount": {
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: mount}], imagePullSecrets: [{name: registry}]}`,
			[]string{"Secret mount: ServiceAccount a /secrets[name=mount] optional", "Secret registry: ServiceAccount a /imagePullSecrets/0"},
		},
		"an Ingress": {`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {
  defaultBackend: {service: {name: front}}, tls: [{hosts: [a]}, {secretName: cert}],
  rules: [{host: none}, {host: a, http: {paths: [{path: /, backend: {service: {name: web}}},
    {path: /s, backend: {resource: {kind: Bucket, name: b}}}]}}]}}`,
			[]string{
				"Secret cert: Ingress i /spec/tls/1/secretName", "Service front: Ingress i /spec/defaultBackend/service",
				"Service web: Ingress i /spec/rules/1/http/paths/0/backend/service",
			}},
		"an HTTPRoute": {`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: shop}, spec: {
  parentRefs: [{name: edge}, {group: "", kind: Service, name: mesh}, {group: "", kind: Service, name: far, namespace: other}],
  rules: [{backendRefs: [{name: web, namespace: shop, filters: [{requestMirror: {backendRef: {name: copy}}}]},
    {name: far, namespace: other}, {group: example.com, kind: Pool, name: pool}],
    filters: [{type: CORS}, {requestMirror: {backendRef: {name: audit}}}, {externalAuth: {backendRef: {name: auth}}}]}, {}]}}`,
			[]string{
				"Service audit: HTTPRoute r /spec/rules/0/filters/1/requestMirror/backendRef",
				"Service auth: HTTPRoute r /spec/rules/0/filters/2/externalAuth/backendRef",
				"Service copy: HTTPRoute r /spec/rules/0/backendRefs/0/filters/0/requestMirror/backendRef",
				"Service mesh: HTTPRoute r /spec/parentRefs/1",
				"Service web: HTTPRoute r /spec/rules/0/backendRefs/0",
			}},
		"a GRPCRoute": {`{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: r, namespace: shop}, spec: {
  parentRefs: [{group: "", kind: Service, name: mesh}],
  rules: [{backendRefs: [{name: api, filters: [{requestMirror: {backendRef: {name: copy}}}]}],
    filters: [{requestMirror: {backendRef: {name: audit}}}, {extensionRef: {group: a, kind: B, name: c}}]}]}}`,
			[]string{
				"Service api: GRPCRoute r /spec/rules/0/backendRefs/0", "Service audit: GRPCRoute r /spec/rules/0/filters/0/requestMirror/backendRef",
				"Service copy: GRPCRoute r /spec/rules/0/backendRefs/0/filters/0/requestMirror/backendRef",
				"Service mesh: GRPCRoute r /spec/parentRefs/0",
			}},
		"a Gateway": {`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: g, namespace: shop}, spec: {gatewayClassName: c,
  listeners: [{name: a}, {name: b, tls: {certificateRefs: [{name: cert}, {name: far, namespace: other},
    {group: example.com, kind: Cert, name: x}]}}],
  infrastructure: {parametersRef: {group: "", kind: ConfigMap, name: settings}},
  tls: {backend: {clientCertificateRef: {name: client}},
    frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}},
    perPort: [{port: 8443, tls: {}}, {port: 443, tls: {validation: {caCertificateRefs: [{group: "", kind: Secret, name: ca},
      {group: "", kind: Secret, name: far, namespace: other}]}}}]}}}}`,
			[]string{
				"ConfigMap ca: Gateway g /spec/tls/frontend/default/validation/caCertificateRefs/0",
				"ConfigMap settings: Gateway g /spec/infrastructure/parametersRef",
				"Secret ca: Gateway g /spec/tls/frontend/perPort/1/tls/validation/caCertificateRefs/0",
				"Secret cert: Gateway g /spec/listeners/1/tls/certificateRefs/0",
				"Secret client: Gateway g /spec/tls/backend/clientCertificateRef",
			}},
		"kinds that refer to nothing": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {serviceAccountName: a}}}}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from := objects(t, test.objects)
			found, err := references.Of(from...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(found)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			checkPaths(t, found, from)
		})
	}
}

func TestEveryReferrerCounts(t *testing.T) {
	reading := func(name, how string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: ` + name +
			`}, spec: {template: {spec: {serviceAccountName: s, containers: [{name: c, ` + how + `}]}}}}`
	}
	const (
		optionalAll = "envFrom: [{configMapRef: {name: m, optional: true}}]"
		optionalKey = "env: [{name: X, valueFrom: {configMapKeyRef: {name: m, key: x, optional: true}}}]"
		key         = "env: [{name: Z, valueFrom: {configMapKeyRef: {name: m, key: z}}}, {name: X, valueFrom: {configMapKeyRef: {name: m, " +
			"key: x}}}]"
	)
	tests := map[string]struct {
		first, second string
		optional      bool
		keys          []string
	}{
		"optional everywhere":                 {optionalAll, optionalAll, true, nil},
		"required in one place":               {optionalAll, key, false, nil},
		"a key that is optional and required": {optionalKey, key, false, []string{"x", "z"}},
		"optional keys":                       {optionalKey, optionalKey, true, []string{"x"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := references.Of(objects(t, reading("a", test.first)+"\n---\n"+reading("b", test.second))...)
			if err != nil || len(found) != 2 {
				t.Fatalf("%v %v", found, err)
			}
			m := found[0]
			if m.Optional() != test.optional || !slices.Equal(m.Keys(), test.keys) || (m.Keys() == nil) != (test.keys == nil) {
				t.Errorf("optional %v, keys %v, want %v %v", m.Optional(), m.Keys(), test.optional, test.keys)
			}
			if m.Referrers[0].Name != "a" || m.Referrers[len(m.Referrers)-1].Name != "b" {
				t.Errorf("referrers %v", m.Referrers)
			}
		})
	}
}

func TestSelecting(t *testing.T) {
	service := func(name, spec string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: {" + spec + "}}"
	}
	services := objects(t, strings.Join([]string{
		service("front", "selector: {tier: front}"), service("exact", "selector: {app: web, tier: front}"),
		service("headless", "clusterIP: None, selector: {app: web}"), service("more", "selector: {app: web, zone: a}"),
		service("other", "selector: {app: api}"), service("manual", "ports: [{port: 80}]"), service("empty", "selector: {}"),
		service("outside", "type: ExternalName, externalName: example.com, selector: {app: web}"), service("cron", "selector: {app: cron}"),
		"{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: knative}, spec: {selector: {app: web}}}",
	}, "\n---\n"))
	workloads := objects(t, web+"\n---\n"+
		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {jobTemplate: {spec: {template: {metadata: {labels: {app: cron}}, `+
		`spec: {}}}}}}`+
		"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}"+
		"\n---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {template: {metadata: {labels: {tier: front, x: null}}}}}"+
		"\n---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: n}, spec: {template: {metadata: {labels: null}}}}")
	found, err := references.Selecting(services, workloads)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Service cron: CronJob c /spec/jobTemplate/spec/template/metadata/labels",
		"Service exact: Deployment web /spec/template/metadata/labels",
		"Service front: DaemonSet d /spec/template/metadata/labels",
		"Service front: Deployment web /spec/template/metadata/labels",
		"Service headless: Deployment web /spec/template/metadata/labels",
	}
	if diff := cmp.Diff(want, lines(found)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	checkPaths(t, found, workloads)
}

func TestTheOrderOfObjectsDoesNotMatter(t *testing.T) {
	all := objects(t, web+"\n---\n"+strings.Replace(web, "name: web}", "name: web2}", 1)+
		"\n---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}, imagePullSecrets: [{name: registry}]}")
	want, err := references.Of(all...)
	if err != nil {
		t.Fatal(err)
	}
	source := rand.New(rand.NewSource(1))
	for range 20 {
		source.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		got, err := references.Of(append(all, all[0])...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v\n%s", err, diff)
		}
	}
	if diff := cmp.Diff(want, references.Merge(want, want)); diff != "" {
		t.Errorf("merged with itself:\n%s", diff)
	}
}

func TestWhatIsNotOfItsTypeIsRefusedWithoutItsValues(t *testing.T) {
	for _, text := range []string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {containers: swordfish}}}}",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {serviceName: [swordfish]}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {jobTemplate: swordfish}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}, secrets: swordfish}",
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: swordfish}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: x}, spec: swordfish}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: x}, spec: {rules: swordfish}}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: x}, spec: {rules: swordfish}}",
		"{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {selector: swordfish}}",
	} {
		from := objects(t, text)
		_, err := references.Of(from...)
		if from[0].GetKind() == "Service" {
			_, err = references.Selecting(from, nil)
		}
		if err == nil || !strings.Contains(err.Error(), from[0].GetKind()+` "x"`) || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestGateways(t *testing.T) {
	route := objects(t, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: shop}, spec: {
  parentRefs: [{name: near},
  {name: named, namespace: shop, sectionName: https, port: 443}, {name: far, namespace: infra},
  {group: "", kind: Service, name: mesh}, {kind: ListenerSet, name: more}]}}`)[0]
	parents, err := references.Gateways(route)
	if diff := cmp.Diff([]references.Parent{{Gateway: "near"}, {Gateway: "named", Listener: "https", Port: 443}}, parents); diff != "" ||
		err != nil {
		t.Errorf("%v, want -, got +:\n%s", err, diff)
	}
	route.Object["spec"] = "swordfish"
	if _, err := references.Gateways(route); err == nil || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("of no shape: %v", err)
	}
}
