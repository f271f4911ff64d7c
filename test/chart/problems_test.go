// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"strings"
	"testing"
)

func TestInvalidValues(t *testing.T) {
	for values, messages := range map[string][]string{
		// All invalid combinations of values are reported together.
		`{replicas: 2, hostNetwork: true, watch: {types: list}, flags: {data-dir: /data}, attribution: {admission: {clientCASecret: ca}}}`: {
			"replicas: 2 needs storage.backend: etcd3",
			"hostNetwork needs another securePort than 10250",
			"watch.types: list needs watch.list",
			"attribution.admission.clientCASecret needs attribution.admission.mode: direct",
			"flags.data-dir is rejected, because the chart sets --data-dir from storage.persistence",
		},
		`{watch: {types: any, secrets: false}}`: {"watch.types: any needs watch.secrets: true"},
		`{watch: {types: list, secrets: false, list: [{group: "", resources: ["*"]}, {group: "*", resources: [deployments, secrets]}]}}`: {
			`watch.list: [{group: "", resources: ["*"]}] needs watch.secrets: true`,
			`watch.list: [{group: "*", resources: ["deployments","secrets"]}] needs watch.secrets: true`,
		},
		`{storage: {backend: etcd3}, flags: {leader-elect: false}, watch: {list: [{group: apps, resources: [deployments]}]}}`: {
			"storage.backend: etcd3 needs storage.etcd.servers",
			"flags.leader-elect: false needs storage.backend: bbolt",
			"watch.list needs watch.types: list",
		},
		`{storage: {etcd: {servers: ["https://etcd:2379"]}}, tls: {certManager: {issuerRef: {name: a}}}, ` +
			`attribution: {admission: {mode: direct}}}`: {
			"storage.etcd.servers needs storage.backend: etcd3",
			"tls.certManager.issuerRef needs tls.mode: cert-manager",
			"attribution.admission.mode: direct needs attribution.admission.segmentSecret",
		},
		`{storage: {backend: etcd3, migrate: {from: etcd3}}}`: {
			"storage.migrate.from: etcd3 needs another storage.backend",
			"storage.migrate.from: etcd3 needs storage.etcd.servers to read from",
		},
		`{storage: {migrate: {replaceTarget: true}}}`: {"storage.migrate.replaceTarget needs storage.migrate.from"},
		// Peers without a restriction would have no effect.
		`{networkPolicy: {egress: {apiServer: {to: [{ipBlock: {cidr: 10.0.0.0/28}}]}, ` +
			`remotes: {to: [{ipBlock: {cidr: 192.0.2.0/24}}]}, rules: [{ports: [{port: 1}]}]}}}`: {
			"networkPolicy.egress.apiServer.to needs networkPolicy.egress.restrict: true",
			"networkPolicy.egress.remotes.to needs networkPolicy.egress.restrict: true",
			"networkPolicy.egress.rules needs networkPolicy.egress.restrict: true",
		},
		`{networkPolicy: {enabled: false, ingress: {from: [{ipBlock: {cidr: 10.0.0.0/28}}]}, egress: {restrict: true}}}`: {
			"networkPolicy.ingress.from needs networkPolicy.enabled: true", "networkPolicy.egress.restrict needs networkPolicy.enabled: true",
		},
		`{podLabels: {app.kubernetes.io/component: other, team: platform}}`: {
			`podLabels.app.kubernetes.io/component cannot be "other": Services and policies select Pods by this label, with server`,
		},
		`{page: {enabled: true, frontProxy: {groups: [team]}}, networkPolicy: {enabled: false}}`: {
			"page.url is missing: the address of the page in browsers",
			"page.frontProxy.groups needs page.authentication: FrontProxy",
			"page.tls.mode: generated needs access of helm to the cluster",
		},
		`{page: {enabled: true, url: "https://page.example", authentication: FrontProxy, podLabels: {app.kubernetes.io/component: server}, ` +
			`frontProxy: {allowedNames: [proxy], groups: ["system:masters"]}, tls: {certManager: {issuerRef: {name: a}}}}}`: {
			"page.authentication: FrontProxy needs page.frontProxy.clientCA.configMap or page.frontProxy.clientCA.secret",
			"page.frontProxy.allowedNames needs page.frontProxy.clientCA",
			`page.frontProxy.groups: "system:masters" is a group of Kubernetes itself`,
			"page.tls.certManager.issuerRef needs page.tls.mode: cert-manager",
			`page.podLabels.app.kubernetes.io/component cannot be "server": Services and policies select Pods by this label, with page`,
		},
		strings.Replace(proxied, "groups: [team]", "groups: []", 1): {
			`page.frontProxy.groups is missing: the groups that the page may impersonate, such as [shop-team]; set ["*"] to allow all`,
		},
		strings.Replace(proxied, "groups: [team]", `groups: ["*", team], groupHeaders: []`, 1): {
			"page.frontProxy.groups needs page.frontProxy.groupHeaders", `page.frontProxy.groups: "*" means all groups; want it alone`,
		},
		`{page: {frontProxy: {clientCA: {configMap: a, secret: b}}, networkPolicy: {from: [{podSelector: {}}]}}, networkPolicy: {enabled: false}}`: {
			"page.frontProxy.clientCA: configMap and secret are set; want one of them",
			"page.networkPolicy.from needs networkPolicy.enabled: true",
		},
		`{page: {authentication: None, replicas: -1, frontProxy: {usernameHeaders: [], groups: ["a,b"]}}}`: {
			"at '/page/authentication': value must be one of 'Token', 'FrontProxy'", "at '/page/replicas'",
			"at '/page/frontProxy/usernameHeaders'", "at '/page/frontProxy/groups/0'",
		},
		// A Secret that cannot be read is reported.
		`{attribution: {admission: {mode: direct, segmentSecret: admission}}}`: {
			"the Secret admission with segment, of attribution.admission.segmentSecret, cannot be read in the namespace slipstream-system",
			"attribution.admission.create: false",
		},
		// The schema rejects single invalid values.
		`{replica: 2, tls: {mode: automatic, secretName: ""}, flags: {git-batch-max-file: 3, git-batch-max-files: many}}`: {
			"additional properties 'replica' not allowed",
			"at '/tls/mode': value must be one of 'self', 'cert-manager', 'secret'",
			"at '/tls/secretName'",
			"additional properties 'git-batch-max-file' not allowed",
			"at '/flags/git-batch-max-files': got string, want integer",
		},
		`{image: {repository: "registry.example/slipstream\n        command: [/other]"}}`: {"at '/image/repository'"},
		`{attribution: {audit: {clientNames: ["a,b"]}}, tls: {certManager: {issuerRef: {kind: ClusterIssuer}}}, ` +
			`flags: {request-timeout: 1 minute}}`: {
			"at '/attribution/audit/clientNames/0'", "at '/tls/certManager/issuerRef'", "at '/flags/request-timeout'",
		},
	} {
		t.Run(values, func(t *testing.T) {
			output := refused(t, values)
			for _, message := range messages {
				// Both versions of helm print it.
				if strings.Count(output, message) != 2 {
					t.Errorf("%q is missing in\n%s", message, output)
				}
			}
		})
	}
}

// A chart with this one as a dependency passes additional values to it.
func TestAsDependency(t *testing.T) {
	if render(t, "{global: {team: platform}, enabled: true}") != render(t, "{}") {
		t.Error("values of other charts change the objects")
	}
}
