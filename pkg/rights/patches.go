// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// nameSecrets says whether patches may make a workload refer to Secrets: by themselves, or by an account, which has Secrets of
// its own. Every field of Kubernetes that does has one of the two words in its name, or lies within one that has: secretRef,
// secretKeyRef, imagePullSecrets, nodePublishSecretRef, serviceAccountName. A field of another name that has them, too, counts;
// a patch that cannot be read is refused elsewhere.
func nameSecrets(patches []v1alpha1.Patch) bool {
	return slices.ContainsFunc(patches, func(p v1alpha1.Patch) bool {
		var content any
		return yaml.Unmarshal([]byte(p.Patch), &content) != nil || nameSecretsIn(content)
	})
}

// nameSecretsIn looks at the names of fields, and at the paths of operations of JSON patches.
func nameSecretsIn(content any) bool {
	switch c := content.(type) {
	case map[string]any:
		for field, value := range c {
			path, isText := value.(string)
			if isAboutSecrets(field) || field == "path" && isText && isAboutSecrets(path) || nameSecretsIn(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(c, nameSecretsIn)
	}
	return false
}

func isAboutSecrets(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "secret") || strings.Contains(text, "serviceaccount")
}
