// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// The words by which a patch is known that may make an object refer to something. Every field of Kubernetes that refers to Secrets,
// by itself or by an account, which has Secrets of its own, has one of the first in its name, or lies within one that has:
// secretRef, secretKeyRef, imagePullSecrets, nodePublishSecretRef, serviceAccountName. ConfigMaps are referred to by configMap,
// configMapRef and configMapKeyRef. Gateways refer to both by certificateRefs, clientCertificateRef, caCertificateRefs and
// parametersRef.
var (
	wordsOfSecrets    = []string{"secret", "serviceaccount", "certificateref", "parametersref"}
	wordsOfConfigMaps = []string{"configmap", "certificateref", "parametersref"}
)

// PatchesNameObjects says whether an environment's patches may make a workload refer to objects that take a right to be read.
func PatchesNameObjects(e *v1alpha1.Environment) bool {
	return mayRefer(e.Spec.Patches, wordsOfSecrets) || mayRefer(e.Spec.Patches, wordsOfConfigMaps)
}

// mayRefer says whether patches may make a workload refer to what has one of the words. A field of another name that has one, too,
// counts; a patch that cannot be read is refused elsewhere.
func mayRefer(patches []v1alpha1.Patch, words []string) bool {
	return slices.ContainsFunc(patches, func(p v1alpha1.Patch) bool {
		var content any
		return yaml.Unmarshal([]byte(p.Patch), &content) != nil || nameIn(content, words)
	})
}

// nameIn looks at the names of fields, and at the paths of operations of JSON patches.
func nameIn(content any, words []string) bool {
	switch c := content.(type) {
	case map[string]any:
		for field, value := range c {
			path, isText := value.(string)
			if isAbout(field, words) || field == "path" && isText && isAbout(path, words) || nameIn(value, words) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(c, func(item any) bool { return nameIn(item, words) })
	}
	return false
}

func isAbout(text string, words []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
