// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/core/user_error.h"
#include "analyzer/run/environment.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

struct GoodCase {
  std::vector<std::string> given;
  const char* devices;
  const char* driver;
};

TEST(Simulate, TellsTheSimulatorWhichDevices) {
  const std::vector<GoodCase> cases = {
      {{"sm_86"}, "8.6", ""},
      {{"8.6"}, "8.6", ""},
      {{"compute_90"}, "9.0", ""},
      {{"sm_90a"}, "9.0", ""},  // code for 9.0 only; the device is plain 9.0
      {{"sm_120"}, "12.0", ""},
      {{"sm_86", "sm_75"}, "8.6;7.5", ""},
      {{"sm_86,driver=12.4"}, "8.6", "12.4"},
      {{"sm_86,name=Desk card"}, "8.6:Desk card", ""},
      {{"sm_86,name=A,driver=13.0", "9.0,driver=13.0,name=B"}, "8.6:A;9.0:B", "13.0"},
      {{"sm_75", "sm_86,driver=12.8"}, "7.5;8.6", "12.8"},
      {{"sm_120,driver=570"}, "12.0", "12.8"},
      {{"sm_120,driver=R580.82.07"}, "12.0", "13.0"},
  };
  for (const GoodCase& good : cases) {
    const Simulation simulation = parse_simulations(good.given);
    EXPECT_EQ(simulation.devices, good.devices) << good.given.front();
    EXPECT_EQ(simulation.driver, good.driver) << good.given.front();
  }
}

TEST(Simulate, RefusesWithOneLineThatNamesTheArgument) {
  struct BadCase {
    std::vector<std::string> given;
    const char* said;
  };
  const std::vector<BadCase> cases = {
      {{"sm_999"}, "`sm_999` is neither an architecture"},
      {{"sm_77"}, "`sm_77` is neither an architecture"},  // well formed, but no such GPU
      {{"turing"}, "`turing` is neither an architecture"},
      {{""}, "`` is neither an architecture"},
      {{",driver=12.4"}, "`` is neither an architecture"},
      {{"sm_86,driver="}, "is no CUDA version"},
      {{"sm_86,driver=new"}, "is no CUDA version"},
      {{"sm_86,driver=57"}, "57"},  // neither CUDA nor a branch
      {{"sm_86,driver=999"}, "R999"},
      {{"sm_86,driver=12.4", "sm_90,driver=13.0"}, "one machine has one driver, and it is 12.4 already"},
      {{"sm_86,name="}, "name= takes a name"},
      {{"sm_86,name=a;b"}, "name= takes a name"},
      {{"sm_86,name=a:b"}, "name= takes a name"},
      {{"sm_86,memory=4"}, "`memory=4` is neither driver=X.Y nor name=N"},
      {{"sm_86,"}, "`` is neither"},
  };
  for (const BadCase& bad : cases) {
    try {
      parse_simulations(bad.given);
      ADD_FAILURE() << bad.given.front() << " was taken";
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(bad.said), std::string::npos) << text;
      EXPECT_EQ(text.find("--simulate "), 0U) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_EQ(error.status(), exit_status::kRunFailed);
    }
  }
}

}  // namespace
}  // namespace kshim::test
