// SPDX-License-Identifier: Apache-2.0
// Tests use the names of every folder of the command without a prefix.
#pragma once

namespace kshim::core {}
namespace kshim::data {}
namespace kshim::device_code {}
namespace kshim::owner {}
namespace kshim::input {}
namespace kshim::diagnose {}
namespace kshim::advise {}
namespace kshim::verbs {}
namespace kshim::run {}
namespace kshim::say {}
namespace kshim::render {}
namespace kshim::compare {}
namespace kshim::cli {}

namespace kshim::test {
using namespace core;
using namespace data;
using namespace device_code;
using namespace owner;
using namespace input;
using namespace diagnose;
using namespace advise;
using namespace verbs;
using namespace run;
using namespace say;
using namespace render;
using namespace compare;
using namespace cli;
}  // namespace kshim::test
