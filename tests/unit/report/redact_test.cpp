// SPDX-License-Identifier: Apache-2.0
#include "kshim/report/redact.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace kshim::report {
namespace {

using Arguments = std::vector<std::string>;

std::string redacted(const std::string& text, std::size_t capacity = 8192) {
  std::vector<char> out(capacity);
  const Redacted result = redact(text, out);
  return {out.data(), result.size};
}
Arguments redacted(const Arguments& arguments, ArgumentDetail detail) {
  ArgumentRedactor redactor(detail);
  Arguments out;
  for (const std::string& argument : arguments) {
    std::array<char, 4096> text{};
    const Redacted result = redactor.next(argument, text);
    out.emplace_back(text.data(), result.size);
  }
  return out;
}
std::string joined(const Arguments& arguments) {
  std::string out;
  for (const std::string& argument : arguments) out += (out.empty() ? "" : " ") + argument;
  return out;
}
/// As a shell's history or a compiler's log has it.
std::string typed(const Arguments& arguments) {
  std::string out;
  for (const std::string& argument : arguments) {
    const bool quoted = argument.find_first_of(" \n") != std::string::npos;
    const char* quote = !quoted ? "" : argument.find('"') == std::string::npos ? "\"" : "'";
    out += (out.empty() ? "" : " ") + (quote + argument) + quote;
  }
  return out;
}

/// Made here, so that no file of ours looks as if it held somebody's key.
std::string made(const std::string& alphabet, std::size_t length) {
  std::uint64_t state = 0x9E3779B97F4A7C15U + length;
  std::string out;
  while (out.size() < length) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    out += alphabet[(state >> 33U) % alphabet.size()];
  }
  return out;
}
const std::string kDigits = "0123456789";
const std::string kHex = kDigits + "abcdef";
const std::string kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + kDigits;
const std::string kAlnum = "abcdefghijklmnopqrstuvwxyz" + kUpper;
const std::string X = "Zq7Lw2Xk9Vb4Nm8T";

/// 77 ways to give a program a secret.
std::vector<Arguments> spellings() {
  const std::string hf = "hf_" + made(kAlnum, 34);
  return {
      {"--token", X},
      {"--token=" + X},
      {"--hf-token", X},
      {"--api-key", X},
      {"--api_key=" + X},
      {"--password", X},
      {"--password=" + X},
      {"--secret", X},
      {"--aws-secret-access-key", X},
      {"--credential=" + X},
      {"--passphrase", X},
      {"WANDB_API_KEY=" + X},
      {"PGPASSWORD=" + X},
      {"https://user:" + X + "@host/path"},
      {"-H", "Authorization: Bearer " + X},
      {"--bearer", X},
      {"-H", "Authorization: Basic " + X},
      {"-H", "Authorization: token " + X},
      {"-H", "AUTHORIZATION: BEARER " + X},
      {"-H", "X-Api-Key: " + X},
      {"-H", "Cookie: theme=dark; session=" + X},
      {"--header=Cookie:a=b; sid=" + X},
      {"-b", "sessionid=" + X},
      {"-u", "user:" + X},
      {"--user", "user:" + X},
      {"--pass", X},
      {"--pwd", X},
      {"--key", X},
      {"--auth", X},
      {"--wandb-key", X},
      {"--hf-token-value", X},
      {"--token-id", X},
      {"--tokens=" + X},
      {"-token:" + X},
      {"--env=HF_TOKEN=" + X},
      {"-e", "HF_TOKEN=" + X},
      {"--url=https://h.example?token=" + X},
      {"https://h.example/x?a=1&token=" + X},
      {"https://h.example/x?token%3D" + X},
      {"https://a.blob.example/c?sv=2024&sig=" + X},
      {"https://b.s3.example/k?X-Amz-Signature=" + X},
      {"https://b.s3.example/k?X-Amz-Security-Token=" + X + "&x=1"},
      {"host=h user=u password=" + X},
      {"host=h password='" + X + " and more' dbname=d"},
      {"jdbc:postgresql://h/db?user=u&password=" + X},
      {"jdbc:sqlserver://h;user=u;password=" + X},
      {"jdbc:oracle:thin:u/" + X + "@h:1521"},
      {"postgresql://u:" + X + "@h/db"},
      {"user:" + X + "@tcp(h:3306)/db"},
      {"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + X + "==;EndpointSuffix=s"},
      {"Endpoint=sb://n;SharedAccessKeyName=k;SharedAccessKey=" + X + "="},
      {"{\"api_key\": \"" + X + "\"}"},
      {"{\\\"api_key\\\": \\\"" + X + "\\\"}"},
      {"{'password':'" + X + "','a':1}"},
      {"api_key: " + X},
      {"password: " + X + " with blanks"},
      {"--set", "a=1,token=" + X},
      {"-c", "A=1 TOKEN=" + X + " run"},
      {"-c", "login(token='" + X + "')"},
      {"-c", "login('" + hf + "')"},
      {"-c", "from x import y\nlogin('" + hf + "')"},
      {"-----BEGIN PRIVATE KEY-----\n" + made(kAlnum, 64) + "\n" + X + "\n-----END PRIVATE KEY-----"},
      {"-----BEGIN OPENSSH PRIVATE KEY-----\\n" + X + "\\n"},
      {"-DAPI_KEY=" + X},
      {"-DKEY=\"" + X + "\""},
      {"tests/test_a.py::test_b[password=" + X + "] (call)"},
      {"machine h.example login me password " + X},
      {"clientSecret=" + X},
      {"userPwd=" + X},
      {"dbPassword:" + X},
      {"--new-password", X},
      {"--jwt", X},
      {"--otp=" + X},
      {"client-key-data: " + X},
      {"login(pwd=\"" + X + "\")"},
      {"https://" + X + "@host/simple"},
      {"XAUTH_SIG=" + X},
  };
}

struct Known {
  std::string start, body;
};
/// 77 kinds of keys as their services make them, none of them anybody's.
std::vector<Known> known() {
  const std::string a36 = made(kAlnum, 36);
  const std::string h32 = made(kHex, 32);
  const std::string h64 = made(kHex, 64);
  return {
      {"AKIA", made(kUpper, 16)},
      {"ASIA", made(kUpper, 16)},
      {"LTAI", made(kAlnum, 20)},
      {"AIza", made(kAlnum, 35)},
      {"GOCSPX-", made(kAlnum, 28)},
      {"ya29.", a36},
      {"1//0", a36},
      {"ghp_", a36},
      {"gho_", a36},
      {"ghu_", a36},
      {"ghs_", a36},
      {"ghr_", a36},
      {"github_pat_", made(kAlnum, 22) + "_" + made(kAlnum, 59)},
      {"glpat-", made(kAlnum, 20)},
      {"gldt-", made(kAlnum, 20)},
      {"glrt-", made(kAlnum, 20)},
      {"glptt-", made(kHex, 40)},
      {"ATATT3", a36},
      {"xoxb-", made(kDigits, 11) + "-" + made(kAlnum, 24)},
      {"xoxp-", made(kDigits, 11) + "-" + made(kAlnum, 24)},
      {"xapp-", "1-" + made(kAlnum, 40)},
      {"https://hooks.slack.com/services/",
       "T" + made(kUpper, 8) + "/B" + made(kUpper, 8) + "/" + made(kAlnum, 24)},
      {"https://discord.com/api/webhooks/", made(kDigits, 18) + "/" + made(kAlnum, 68)},
      {"https://x.webhook.office.com/webhookb2/", h32},
      {made(kDigits, 9) + ":", "AA" + made(kAlnum, 33)},
      {"https://api.telegram.org/bot", made(kDigits, 9) + ":AA" + made(kAlnum, 33)},
      {"sk_live_", made(kAlnum, 24)},
      {"rk_live_", made(kAlnum, 24)},
      {"whsec_", made(kAlnum, 32)},
      {"sq0atp-", made(kAlnum, 22)},
      {"sq0csp-", made(kAlnum, 43)},
      {"access_token$production$", made(kAlnum, 16) + "$" + h32},
      {"shpat_", h32},
      {"SG.", made(kAlnum, 22) + "." + made(kAlnum, 43)},
      {"key-", h32},
      {"SK", h32},
      {"", h32 + "-us12"},
      {"npm_", a36},
      {"pypi-AgEIcHlwaS5vcmc", made(kAlnum, 70)},
      {"rubygems_", made(kHex, 48)},
      {"dckr_pat_", made(kAlnum, 27)},
      {"AKCp", made(kAlnum, 69)},
      {"hvs.", made(kAlnum, 90)},
      {made(kAlnum, 14) + ".atlasv1.", made(kAlnum, 60)},
      {"dop_v1_", h64},
      {"dp.pt.", made(kAlnum, 43)},
      {"dapi", h32},
      {"NRAK-", made(kUpper, 27)},
      {"glsa_", made(kAlnum, 32) + "_" + made(kHex, 8)},
      {"glc_", made(kAlnum, 60)},
      {"sntrys_", made(kAlnum, 60)},
      {"lin_api_", made(kAlnum, 40)},
      {"figd_", made(kAlnum, 40)},
      {"pat-na1-", made(kHex, 8) + "-" + made(kHex, 24)},
      {"PMAK-", made(kHex, 24) + "-" + made(kHex, 34)},
      {"pul-", made(kHex, 40)},
      {"pscale_tkn_", made(kAlnum, 43)},
      {"shippo_live_", made(kHex, 40)},
      {"sbp_", made(kHex, 40)},
      {"tskey-auth-", made(kAlnum, 12) + "-" + made(kAlnum, 32)},
      {"AGE-SECRET-KEY-1", made(kUpper, 58)},
      {"HRKU-", made(kAlnum, 30)},
      {"squ_", made(kHex, 40)},
      {"dt0c01.", made(kUpper, 24) + "." + made(kUpper, 64)},
      {"abc8Q~", made(kAlnum, 34)},
      {"hf_", made(kAlnum, 34)},
      {"sk-ant-api03-", made(kAlnum, 93)},
      {"sk-proj-", made(kAlnum, 48)},
      {"sk-", made(kAlnum, 48)},
      {"gsk_", made(kAlnum, 52)},
      {"xai-", made(kAlnum, 80)},
      {"r8_", made(kAlnum, 37)},
      {"pplx-", made(kAlnum, 48)},
      {"nvapi-", made(kAlnum, 64)},
      {"lsv2_pt_", h32 + "_" + made(kHex, 10)},
      {"xkeysib-", h64 + "-" + made(kAlnum, 16)},
      {"eyJ", made(kAlnum, 30) + "." + made(kAlnum, 60) + "." + made(kAlnum, 43)},
  };
}

// shows: secrets: 77 ways to give a program one
TEST(Redact, NoneOf77SpellingsStaysInClear) {
  const std::vector<Arguments> all = spellings();
  EXPECT_EQ(all.size(), 77U);
  for (const Arguments& row : all) {
    Arguments arguments{"/usr/bin/tool", "--flag"};
    arguments.insert(arguments.end(), row.begin(), row.end());
    for (const std::string& shown : {joined(redacted(arguments, ArgumentDetail::names)),
                                     joined(redacted(arguments, ArgumentDetail::full)), redacted(typed(row)),
                                     redacted("nvcc fatal: " + typed(row) + " failed")}) {
      EXPECT_EQ(shown.find(X), std::string::npos) << typed(row) << "\n -> " << shown;
      EXPECT_EQ(shown.find("hf_"), std::string::npos) << shown;
      EXPECT_NE(shown.find(kHidden), std::string::npos) << shown;
    }
    EXPECT_EQ(redacted(arguments, ArgumentDetail::names).size(), arguments.size());
  }
}

// shows: secrets: keys of 77 services
TEST(Redact, NoneOf77KindsOfKeysStaysInClear) {
  const std::vector<Known> all = known();
  EXPECT_EQ(all.size(), 77U);
  for (const Known& key : all) {
    const std::string whole = key.start + key.body;
    for (const std::string& text : {whole, "--option=" + whole, "f('" + whole + "')",
                                    "/cache/" + whole + "/lib.so", "a=1&b=" + whole, "x\n" + whole + "\ny"}) {
      EXPECT_EQ(redacted(text).find(key.body), std::string::npos) << text << "\n -> " << redacted(text);
      EXPECT_EQ(joined(redacted({"/bin/x", text}, ArgumentDetail::full)).find(key.body), std::string::npos)
          << text;
      EXPECT_EQ(joined(redacted({"/bin/x", text}, ArgumentDetail::names)).find(key.body), std::string::npos)
          << text;
    }
  }
}

TEST(Redact, AValueIsHiddenToItsEnd) {
  for (const std::string& text :
       {"Cookie: a=\"" + X + "\"", "Cookie: a=\"1\"; tok=" + X, "password=\"a\\\"" + X + "\"",
        R"({"token":[")" + X + "\"]}", R"({\"token\": \")" + X + R"(\", \"x\": 1})", "SSHPASS=" + X,
        "pswd: " + X, "key: |\n  " + X + "\n  " + X + "\nnext: 1", "password:\n  " + X,
        "<password>" + X + "</password>", "X-Api-Key%253A" + X, "token%253D" + X, "password " + X,
        "wandb login " + X + X, "Authorization%3A%20Bearer%20" + X,
        "curl -H 'Cookie: a=" + X + "' https://host/a"})
    EXPECT_EQ(redacted(text).find(X), std::string::npos) << redacted(text);
  EXPECT_EQ(redacted("<key>" + X + "</key><a>1</a>"), "<key>…</key><a>1</a>");
  EXPECT_EQ(redacted("key: |-\n  " + X + "\nnext: 1"), "key: |-\n  …\nnext: 1");
  EXPECT_EQ(redacted("curl -H 'Cookie: a=" + X + "' https://host/a"), "curl -H 'Cookie: …' https://host/a");
  EXPECT_EQ(redacted(R"({"password":"a\"b","x":1})"), R"({"password":"…","x":1})");
}

TEST(Redact, WhatIsNoSecretStays) {
  for (const char* text :
       {"/home/u/.cache/torch_extensions/py312_cu128/fused_adam/fused_adam.so",
        "/opt/sk-learn-contrib-models-2024/a.so",
        "/data/hf_models/checkpoints/llama-2-7b",
        "/usr/lib/libcuda.so.580.82.07",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
        "void at::native::key::pass<float, (int)3>(float*)",
        "arch=compute_90,code=sm_90",
        "expandable_segments:True",
        "max_tokens=512",
        "--tokenizer llama",
        "tokenizer=meta",
        "num_key_value_heads=8",
        "eos_token_id=2",
        "nvcc -gencode arch=compute_120,code=sm_120 -O3 kernel.cu",
        "PWD=/home/u",
        "--token-file=/run/t",
        "GPU-12345678-1234-1234-1234-123456789abc",
        "torch.cuda.OutOfMemoryError: CUDA out of memory",
        "https://download.pytorch.org/whl/cu128",
        "git@github.com:owner/name",
        "cuda:0",
        "the token embedding_v2<float> of std::pair<key, int>(3)",
        "wrong password or user name",
        "basic block_17 of login node12",
        "state_dict:\n  layer1.weight",
        "5a4d3c2b1a0f9e8d7c6b5a4d3c2b1a0f"})
    EXPECT_EQ(redacted(std::string(text)), text);
}

TEST(Redact, TheRestOfATextStays) {
  EXPECT_EQ(redacted(std::string("https://me:secret@host/a")), "https://…@host/a");
  EXPECT_EQ(redacted(std::string("--index=https://tok@host/a?b@c")), "--index=https://…@host/a?b@c");
  EXPECT_EQ(redacted(std::string("a http://u:p@q@h b ftp://x/y@z")), "a http://…@h b ftp://x/y@z");
  EXPECT_EQ(redacted(std::string("/a?token=abc&x=1")), "/a?token=…&x=1");
  EXPECT_EQ(redacted(std::string("{\"api_key\": \"v\", \"n\": 1}")), "{\"api_key\": \"…\", \"n\": 1}");
  EXPECT_EQ(redacted(std::string("cc: -DAPI_KEY=v -O2")), "cc: -DAPI_KEY=… -O2");
  EXPECT_EQ(redacted(redacted(std::string("a password=b c"))), "a password=… c") << "twice is once";
}

TEST(Redact, ACapIsKept) {
  const std::string text = "password=" + X + " " + std::string(100, 'y');
  for (std::size_t capacity = 0; capacity <= 120; ++capacity) {
    std::vector<char> out(capacity);
    const Redacted result = redact(text, out);
    EXPECT_LE(result.size, capacity);
    EXPECT_EQ(result.cut, capacity < 9 + kHidden.size() + 101);
    const std::string shown(out.data(), result.size);
    EXPECT_EQ(shown.find(X.substr(0, 2)), std::string::npos);
  }
}
TEST(Redact, ACutIsNotInsideACharacter) {
  EXPECT_EQ(redacted("aä", 2), "a");
  EXPECT_EQ(redacted("aä", 3), "aä");
  EXPECT_EQ(redacted("😀😀", 7), "😀");
}

std::string without(const Person& person, std::string_view text) {
  std::string out;
  RedactedPieces pieces(text, Content::text, &person);
  for (std::string_view piece; pieces.next(piece);) out += piece;
  return out;
}
TEST(Private, HomesAreTildesAndTheNameIsNoPartOfAPath) {
  const Person ada{"/nfs/home/ada", "ada"};
  EXPECT_EQ(without(ada, "/nfs/home/ada/x.py"), "~/x.py");
  EXPECT_EQ(without(ada, "/nfs/home/ada"), "~");
  EXPECT_EQ(without(ada, "/nfs/home/ada2"), "/nfs/home/ada2");
  EXPECT_EQ(without(ada, "/home/ada/x:/home/bob:/usr/lib:/root/y"), "~/x:~:/usr/lib:~/y");
  EXPECT_EQ(without(ada, "-I/home/bob/include -L/nfs/home/ada/lib"), "-I~/include -L~/lib");
  EXPECT_EQ(without(ada, "/scratch/ada/data"), "/scratch/…/data");
  EXPECT_EQ(without(ada, "/tmp/torchinductor_ada/ab/k.cubin"), "/tmp/torchinductor_…/ab/k.cubin");
  EXPECT_EQ(without(ada, "/opt/lib/site-packages/ada/_C.so"), "/opt/lib/site-packages/ada/_C.so");
  EXPECT_EQ(without(ada, "_ZN3ada4loadEv ada load_ada"), "_ZN3ada4loadEv ada load_ada");
  EXPECT_EQ(without(ada, "/nfs/home/ada/x?token=" + X), "~/x?token=…");
  EXPECT_EQ(without(ada, "ada"), "…");
  EXPECT_EQ(without(ada, "/data/user=ada/x.so"), "/data/user=…/x.so");
  EXPECT_EQ(without(ada, "/runs/lr=0.1,user=ada,seed=2/k"), "/runs/lr=0.1,user=…,seed=2/k");
  EXPECT_EQ(without(ada, "/s3/user%3Dada/x /x/ada@host/y /x/.ada/z"), "/s3/user%3D…/x /x/…@host/y /x/.…/z");
  EXPECT_EQ(without(ada, "/opt/libfoo.ada /opt/canada/x /opt/ada2/x"),
            "/opt/libfoo.ada /opt/canada/x /opt/ada2/x");
  EXPECT_EQ(without({}, "/home/me/x /usr/share/home/x"), "~/x /usr/share/home/x");
  EXPECT_EQ(without({"/home", ""}, "/home/me/x"), "~/x");
  EXPECT_EQ(without({"/root", ""}, "/root/x /var/root/x"), "~/x /var/root/x");
}

TEST(RedactArguments, NamesKeepsWhatADiagnosisNeeds) {
  const auto names = [](const Arguments& arguments) { return redacted(arguments, ArgumentDetail::names); };
  EXPECT_EQ(
      names({"/usr/bin/python3", "-u", "train.py", "--lr", "0.1", "--device", "cuda:0", "--data=/home/me/x"}),
      (Arguments{"/usr/bin/python3", "-u", "train.py", "--lr", "…", "--device", "cuda:0", "--data=…"}));
  EXPECT_EQ(
      names({"python", "-m", "torch.distributed.run", "--nproc_per_node", "8", "train.py", "secret.py"}),
      (Arguments{"python", "-m", "torch.distributed.run", "--nproc_per_node", "8", "train.py", "…"}));
  EXPECT_EQ(names({"python", "-c", "import torch", "x.py"}), (Arguments{"python", "-c", "…", "…"}));
  EXPECT_EQ(names({"bash", "-lc", "run.sh now", "x.py"}), (Arguments{"bash", "-l…", "…", "…"}));
  EXPECT_EQ(names({"python3", "/usr/local/bin/vllm", "serve", "org/model", "--dtype", "bfloat16"}),
            (Arguments{"python3", "/usr/local/bin/vllm", "…", "…", "--dtype", "bfloat16"}));
  EXPECT_EQ(names({"nvcc", "-gencode", "arch=compute_90,code=sm_90", "-arch=sm_80", "-pX", "x.cu"}),
            (Arguments{"nvcc", "-gencode", "arch=compute_90,code=sm_90", "-arch=sm_80", "-p…", "…"}));
  EXPECT_EQ(names({"timeout", "9", "sh", "-c", "mytool hunter2 && ./run.py"}),
            (Arguments{"timeout", "…", "…", "-c", "…"}));
  EXPECT_EQ(names({"env", "DATABASE=hunter2/x.py", "python", "train.py"}),
            (Arguments{"env", "…", "…", "train.py"}));
  EXPECT_EQ(names({"torchrun", "--standalone", "--nproc-per-node=2", "train.py"}),
            (Arguments{"torchrun", "--standalone", "--nproc-per-node=2", "train.py"}));
  EXPECT_EQ(names({"./a.out", "input.dat", "--device", "/home/me/secret device"}),
            (Arguments{"./a.out", "…", "--device", "…"}));
  EXPECT_EQ(names({"python", "-W", "ignore", "train.py"}), (Arguments{"python", "-W", "…", "train.py"}));
  EXPECT_EQ(names({"x", "", "-", "--", "--é=1"}), (Arguments{"x", "…", "…", "--", "--…"}));
  EXPECT_EQ(names({"worker --dbpw hunter2 token=x /y", "train.py"}), (Arguments{"worker …", "train.py"}));
}
TEST(RedactArguments, FullKeepsAllButSecrets) {
  const Arguments plain{"python", "train.py", "--max-tokens", "512",       "--tokenizer",
                        "llama",  "-c",       "import torch", "tokens.txt"};
  EXPECT_EQ(redacted(plain, ArgumentDetail::full), plain);
  EXPECT_EQ(redacted({"x", "--token", "--verbose"}, ArgumentDetail::full),
            (Arguments{"x", "--token", "--verbose"}))
      << "a flag without a value";
}
TEST(RedactArguments, ASecretMayBeginWithDashes) {
  for (const std::string& secret :
       {"--" + X, "-" + X, std::string("--Sw0rdfish"), std::string("--a b"), std::string("--S")})
    for (const ArgumentDetail detail : {ArgumentDetail::names, ArgumentDetail::full})
      for (const char* option : {"--token", "--password", "--hf-token", "-token"}) {
        const Arguments shown = redacted({"x", option, secret, "--verbose"}, detail);
        EXPECT_EQ(shown[2], kHidden) << option << " " << secret;
        EXPECT_EQ(shown[3], "--verbose");
      }
  for (const char* flag : {"--verbose", "--max-tokens", "--dry_run", "-v"})
    EXPECT_EQ(redacted({"x", "--token", flag}, ArgumentDetail::names)[2], flag);
}
TEST(RedactArguments, PartsAreTold) {
  ArgumentRedactor redactor(ArgumentDetail::names);
  std::vector<ArgumentPart> parts;
  for (const char* argument : {"python", "-u", "-m", "pkg.mod", "--x", "y"}) {
    std::array<char, 64> text{};
    redactor.next(argument, text);
    parts.push_back(redactor.part());
  }
  using enum ArgumentPart;
  EXPECT_EQ(parts, (std::vector<ArgumentPart>{program, option, script, script, option, value}));
}

}  // namespace
}  // namespace kshim::report
