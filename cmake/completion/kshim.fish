# SPDX-License-Identifier: Apache-2.0
kshim completion fish | source
