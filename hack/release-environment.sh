# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# The environment of a release, for scripts to source: no setting of this machine or its user for git or Go has an effect. A clone has no
# attributes of its own; those of the user are in a file whose name git knows without any setting.

# shellcheck disable=SC2046 # These are names.
unset -v $(git rev-parse --local-env-vars)
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.attributesFile GIT_CONFIG_VALUE_0=/dev/null
export GIT_CONFIG_KEY_1=log.showSignature GIT_CONFIG_VALUE_1=false
# With -trimpath, clones share the compiled packages in Go's build cache.
export GOENV=off GOWORK=off GOFLAGS=-trimpath
