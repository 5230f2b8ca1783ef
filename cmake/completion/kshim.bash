# SPDX-License-Identifier: Apache-2.0
# bash loads this at the first Tab; the command itself knows its options.
eval "$(kshim completion bash)"
