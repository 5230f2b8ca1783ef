#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/validate_wheel.sh as RAPIDS' repositories have it, beside pydistcheck, twine and abi3audit: the list and the budgets stand in
# [tool.kshim] of the package's pyproject.toml.
set -euo pipefail
package_dir=$1
wheel_dir=$2
cd "$package_dir"
kshim scan --config pyproject.toml "$wheel_dir"/*.whl
