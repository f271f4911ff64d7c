// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// change is a value that differs from the default, with other values that make it effective.
type change struct {
	// to is the new value, in YAML.
	to string
	// when are the other values, in YAML.
	when string
	// with replaces when for the new value, if it is not empty.
	with string
}

const (
	etcd    = `{storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}}}`
	several = `{replicas: 3, storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}}}`
	moving  = `{storage: {backend: bbolt, etcd: {servers: ["https://etcd:2379"]}, migrate: {from: etcd3}}}`
	direct  = `{attribution: {admission: {mode: direct, segmentSecret: segment, create: false}}}`
	narrow  = `{networkPolicy: {egress: {restrict: true}}}`
	audited = `{attribution: {audit: {clientCASecret: audit}}}`
	peers   = `[{namespaceSelector: {}}]`
	shown   = `{page: {enabled: true, url: "https://page.example", tls: {mode: secret}}}`
	proxied = `{page: {enabled: true, url: "https://page.example", tls: {mode: secret}, ` +
		`authentication: FrontProxy, frontProxy: {clientCA: {configMap: proxy}, groups: [team]}}}`
	issued = `{page: {enabled: true, url: "https://page.example", tls: {mode: cert-manager}}}`
)

// changes has a change of every value.
var changes = map[string]change{
	"image.repository":                         {to: "registry.example/slipstream"},
	"image.tag":                                {to: "v9"},
	"image.digest":                             {to: "sha256:" + strings.Repeat("0", 64)},
	"image.pullPolicy":                         {to: "Always"},
	"imagePullSecrets":                         {to: "[{name: registry}]"},
	"replicas":                                 {to: "0"},
	"securePort":                               {to: "8443"},
	"shutdownDelaySeconds":                     {to: "7"},
	"storage.backend":                          {to: "etcd3", with: `{storage: {etcd: {servers: ["https://etcd:2379"]}}}`},
	"storage.persistence.size":                 {to: "1Gi"},
	"storage.persistence.storageClassName":     {to: `""`},
	"storage.persistence.existingClaim":        {to: "mine"},
	"storage.persistence.accessModes":          {to: "[ReadWriteOncePod]"},
	"storage.persistence.annotations":          {to: "{a: b}"},
	"storage.persistence.keep":                 {to: "false"},
	"storage.etcd.servers":                     {to: `["https://other:2379"]`, when: etcd},
	"storage.etcd.prefix":                      {to: "/other", when: etcd},
	"storage.etcd.tlsSecret":                   {to: "etcd", when: etcd},
	"storage.migrate.from":                     {to: "bbolt", when: etcd},
	"storage.migrate.replaceTarget":            {to: "true", when: moving},
	"encryption.configSecret":                  {to: "keys"},
	"tls.mode":                                 {to: "secret"},
	"tls.secretName":                           {to: "mine", when: "{tls: {mode: secret}}"},
	"tls.certManager.issuerRef":                {to: "{name: corporate}", when: "{tls: {mode: cert-manager}}"},
	"attribution.admission.mode":               {to: "none"},
	"attribution.admission.create":             {to: "false"},
	"attribution.admission.excludedNamespaces": {to: "[]"},
	"attribution.admission.segmentSecret":      {to: "other", when: direct},
	"attribution.admission.clientCASecret":     {to: "authority", when: direct},
	"attribution.audit.clientCASecret":         {to: "audit"},
	"attribution.audit.clientNames":            {to: "[one]", when: audited},
	"tracing.endpoint":                         {to: "collector:4317"},
	"tracing.samplingRatePerMillion":           {to: "1000000", when: "{tracing: {endpoint: collector:4317}}"},
	"rbac.create":                              {to: "false"},
	"rbac.aggregate":                           {to: "false"},
	"watch.types":                              {to: "any"},
	"watch.list": {
		to: "[{group: apps, resources: [daemonsets]}]", when: "{watch: {types: list, list: [{group: apps, resources: [deployments]}]}}",
	},
	"watch.secrets":                        {to: "false"},
	"catalogs.namespaces":                  {to: "[shop]"},
	"environments.sourceNamespaces":        {to: "[shop]"},
	"environments.targetNamespaces":        {to: "[test]"},
	"environments.createNamespaces":        {to: "true"},
	"pipelines.enabled":                    {to: "true"},
	"pipelines.jobNamespaces":              {to: "[jobs]", when: "{pipelines: {enabled: true}}"},
	"credentials":                          {to: "{shop: [git]}"},
	"flags":                                {to: "{v: 2}"},
	"serviceAccount.annotations":           {to: "{a: b}"},
	"service.port":                         {to: "8443"},
	"service.annotations":                  {to: "{a: b}"},
	"networkPolicy.enabled":                {to: "false"},
	"networkPolicy.ingress.from":           {to: peers},
	"networkPolicy.egress.restrict":        {to: "true"},
	"networkPolicy.egress.apiServer.to":    {to: peers, when: narrow},
	"networkPolicy.egress.apiServer.ports": {to: "[8443]", when: narrow},
	"networkPolicy.egress.remotes.to":      {to: peers, when: narrow},
	"networkPolicy.egress.remotes.ports":   {to: "[8443]", when: narrow},
	"networkPolicy.egress.rules":           {to: "[{ports: [{port: 8443}]}]", when: narrow},
	"podDisruptionBudget.enabled":          {to: "false", when: several},
	"podDisruptionBudget.maxUnavailable":   {to: "50%", when: several},
	"resources.requests.cpu":               {to: "1"},
	"resources.requests.memory":            {to: "1Gi"},
	"resources.limits.memory":              {to: "2Gi"},
	"nodeSelector":                         {to: "{a: b}"},
	"tolerations":                          {to: "[{operator: Exists}]"},
	"affinity":                             {to: "{nodeAffinity: {}}"},
	"topologySpreadConstraints":            {to: "[]", when: several},
	"priorityClassName":                    {to: "system-cluster-critical"},
	"podAnnotations":                       {to: "{a: b}"},
	"podLabels":                            {to: "{a: b}"},
	"hostNetwork":                          {to: "true", when: "{securePort: 8443}"},
	"extraEnv":                             {to: "[{name: HTTPS_PROXY, value: http://proxy}]"},
	"extraVolumes":                         {to: "[{name: a, emptyDir: {}}]"},
	"extraVolumeMounts":                    {to: "[{name: a, mountPath: /a}]"},
	"page.enabled":                         {to: "true", with: `{page: {url: "https://page.example", tls: {mode: secret}}}`},
	"page.url":                             {to: "https://other.example:8443", when: shown},
	"page.replicas":                        {to: "2", when: shown},
	"page.logoutURL":                       {to: "/oauth2/sign_out", when: shown},
	"page.maxSessions":                     {to: "7", when: shown},
	"page.image.repository":                {to: "registry.example/page", when: shown},
	"page.image.tag":                       {to: "v9", when: shown},
	"page.image.digest":                    {to: "sha256:" + strings.Repeat("0", 64), when: shown},
	"page.image.pullPolicy":                {to: "Always", when: shown},
	"page.authentication":                  {to: "FrontProxy", when: shown, with: proxied},
	"page.frontProxy.clientCA.configMap":   {to: "other", when: proxied},
	"page.frontProxy.clientCA.secret":      {to: "proxy", when: shown},
	"page.frontProxy.allowedNames":         {to: "[one]", when: proxied},
	"page.frontProxy.usernameHeaders":      {to: "[X-User]", when: proxied},
	"page.frontProxy.uidHeaders":           {to: "[X-Uid]", when: proxied},
	"page.frontProxy.groupHeaders":         {to: "[X-Group]", when: proxied},
	"page.frontProxy.extraHeaderPrefixes":  {to: "[X-Extra-]", when: proxied},
	"page.frontProxy.groups":               {to: "[other]", when: proxied},
	"page.tls.mode":                        {to: "cert-manager", when: shown},
	"page.tls.secretName":                  {to: "mine", when: shown},
	"page.tls.certManager.issuerRef":       {to: "{name: corporate}", when: issued},
	"page.service.annotations":             {to: "{a: b}", when: shown},
	"page.networkPolicy.from":              {to: peers, when: shown},
	"page.resources.requests.cpu":          {to: "1", when: shown},
	"page.resources.requests.memory":       {to: "1Gi", when: shown},
	"page.resources.limits.memory":         {to: "2Gi", when: shown},
	"page.nodeSelector":                    {to: "{a: b}", when: shown},
	"page.tolerations":                     {to: "[{operator: Exists}]", when: shown},
	"page.affinity":                        {to: "{nodeAffinity: {}}", when: shown},
	"page.topologySpreadConstraints":       {to: "[{topologyKey: zone}]", when: shown},
	"page.priorityClassName":               {to: "system-cluster-critical", when: shown},
	"page.podAnnotations":                  {to: "{a: b}", when: shown},
	"page.podLabels":                       {to: "{a: b}", when: shown},
	"metrics.readers":                      {to: "[{namespace: monitoring, name: prometheus}]"},
	"metrics.serviceMonitor.enabled":       {to: "true"},
	"metrics.serviceMonitor.labels":        {to: "{a: b}", when: "{metrics: {serviceMonitor: {enabled: true}}}"},
	"metrics.serviceMonitor.interval":      {to: "1m", when: "{metrics: {serviceMonitor: {enabled: true}}}"},
	"metrics.prometheusRule.enabled":       {to: "true"},
	"metrics.prometheusRule.labels":        {to: "{a: b}", when: "{metrics: {prometheusRule: {enabled: true}}}"},
	"metrics.dashboard.enabled":            {to: "true"},
	"metrics.dashboard.labels":             {to: "{a: b}", when: "{metrics: {dashboard: {enabled: true}}}"},
}

// Every value affects the rendered objects.
func TestEveryValueHasAnEffect(t *testing.T) {
	content, err := os.ReadFile(chartFile(t, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(content, &values); err != nil {
		t.Fatal(err)
	}
	if got, want := leaves("", values), slices.Sorted(maps.Keys(changes)); !slices.Equal(got, want) {
		t.Errorf("values of values.yaml:\n%v\nvalues of this test:\n%v", got, want)
	}
	renderings := map[string]string{}
	for _, change := range changes {
		if _, ok := renderings[change.when]; !ok {
			renderings[change.when] = renderValues(t, circumstances(t, change.when))
		}
	}
	for path, change := range changes {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var to any
			if err := yaml.Unmarshal([]byte(change.to), &to); err != nil {
				t.Fatal(err)
			}
			values := circumstances(t, cmp.Or(change.with, change.when))
			set(values, strings.Split(path, "."), to)
			if renderValues(t, values) == renderings[change.when] {
				t.Errorf("%s: %s has no effect", path, change.to)
			}
		})
	}
}

// leaves returns the paths of all values that are not maps, and of empty maps.
func leaves(prefix string, values map[string]any) []string {
	var paths []string
	for name, value := range values {
		inner, ok := value.(map[string]any)
		if ok && len(inner) > 0 && name != "labels" {
			paths = append(paths, leaves(prefix+name+".", inner)...)
			continue
		}
		paths = append(paths, prefix+name)
	}
	slices.Sort(paths)
	return paths
}

func circumstances(t *testing.T, document string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(document), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// set sets a value at a path.
func set(values map[string]any, path []string, to any) {
	for _, name := range path[:len(path)-1] {
		inner, ok := values[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			values[name] = inner
		}
		values = inner
	}
	values[path[len(path)-1]] = to
}

func renderValues(t *testing.T, values map[string]any) string {
	t.Helper()
	document, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	rendering, err := renderWith(t, programs.Helm, string(document))
	if err != nil {
		t.Fatal(fmt.Errorf("failed to render the values\n%s: %w", document, err))
	}
	return rendering
}
