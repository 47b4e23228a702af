#include "daemon/wire_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

template <typename Message>
Message Blank(tm_wire_type type) {
  Message message = {};
  message.header = {TM_WIRE_MAGIC, TM_WIRE_VERSION, static_cast<uint16_t>(type), sizeof(message),
                    7};
  return message;
}

template <typename Message>
Reading Read(const Message& message) {
  const std::vector<uint8_t> bytes = BytesOf(message);
  return ReadRequest(bytes.data(), bytes.size());
}

tm_wire_hello GoodHello() {
  auto hello = Blank<tm_wire_hello>(TM_WIRE_HELLO);
  hello.device_count = 1;
  std::strcpy(hello.job_name, "train");
  return hello;
}

tm_wire_lease GoodLease() {
  auto lease = Blank<tm_wire_lease>(TM_WIRE_LEASE);
  lease.count = 4;
  lease.at_least = 1;
  return lease;
}

TEST(ReadRequest, AcceptsEveryWellFormedRequest) {
  EXPECT_EQ(Read(GoodHello()).verdict, Verdict::kServe);
  EXPECT_EQ(Read(GoodLease()).verdict, Verdict::kServe);
  auto chunks = Blank<tm_wire_chunks>(TM_WIRE_RETURN);
  chunks.count = 1;
  EXPECT_EQ(Read(chunks).verdict, Verdict::kServe);
  auto share = Blank<tm_wire_share>(TM_WIRE_SHARE);
  share.token[5] = 1;
  share.count = share.total = 1;
  EXPECT_EQ(Read(share).verdict, Verdict::kServe);
  share.header.type = TM_WIRE_OPEN_SHARE;
  share.total = 0;
  EXPECT_EQ(Read(share).verdict, Verdict::kServe);
  tm_wire_header ping = {TM_WIRE_MAGIC, TM_WIRE_VERSION, TM_WIRE_PING, sizeof(ping), 7};
  std::vector<uint8_t> bytes(sizeof(ping));
  std::memcpy(bytes.data(), &ping, sizeof(ping));
  EXPECT_EQ(ReadRequest(bytes.data(), bytes.size()).verdict, Verdict::kServe);
}

TEST(ReadRequest, DropsWhatIsNotOurProtocol) {
  tm_wire_hello hello = GoodHello();
  const std::vector<uint8_t> bytes = BytesOf(hello);
  for (const size_t size : {size_t{0}, size_t{15}, sizeof(hello) - 1}) {
    EXPECT_EQ(ReadRequest(bytes.data(), size).verdict, Verdict::kDrop) << size;
  }
  hello.header.magic ^= 1;
  EXPECT_EQ(Read(hello).verdict, Verdict::kDrop);
  hello = GoodHello();
  hello.header.size += 1;
  EXPECT_EQ(Read(hello).verdict, Verdict::kDrop);
  for (const tm_wire_type type : {TM_WIRE_WELCOME, TM_WIRE_LEASED, TM_WIRE_DONE}) {
    hello = GoodHello();
    hello.header.type = static_cast<uint16_t>(type);
    EXPECT_EQ(Read(hello).verdict, Verdict::kDrop) << type;
  }
}

template <typename Message>
std::string Refusal(const Message& message) {
  const Reading reading = Read(message);
  EXPECT_EQ(reading.verdict, Verdict::kRefuse);
  return reading.reason;
}

TEST(ReadRequest, NamesTheFieldItsValueAndItsRange) {
  tm_wire_hello hello = GoodHello();
  hello.device_count = 17;
  EXPECT_EQ(Refusal(hello), "device_count 17 is out of range: 1 to 16");
  hello = GoodHello();
  std::memset(hello.job_name, 'x', sizeof(hello.job_name));
  EXPECT_THAT(Refusal(hello), HasSubstr("1 to 63 bytes and end with a zero"));
  tm_wire_lease lease = GoodLease();
  lease.at_least = 5;
  EXPECT_EQ(Refusal(lease), "at_least 5 is out of range: 1 to 4");
  lease = GoodLease();
  lease.place = 2;
  EXPECT_EQ(Refusal(lease), "place 2 is out of range: 0 to 1");
  auto chunks = Blank<tm_wire_chunks>(TM_WIRE_RETURN);
  chunks.count = 1025;
  EXPECT_EQ(Refusal(chunks), "count 1025 is out of range: 1 to 1024");
  chunks.count = 2;
  chunks.chunk_id[0] = chunks.chunk_id[1] = 9;
  EXPECT_EQ(Refusal(chunks), "chunk_id 9 appears twice");
  auto share = Blank<tm_wire_share>(TM_WIRE_SHARE);
  share.count = 1;
  EXPECT_EQ(Refusal(share), "token is all zero");
  share.token[0] = 1;
  share.first = UINT32_MAX;
  EXPECT_THAT(Refusal(share), HasSubstr("first 4294967295 is out of range"));
}

TEST(ReadRequest, MakesAJobsNamePrintable) {
  tm_wire_hello hello = GoodHello();
  std::strcpy(hello.job_name, "a\nb\xc3\xa9");
  const Reading reading = Read(hello);
  EXPECT_EQ(reading.verdict, Verdict::kServe);
  EXPECT_STREQ(std::get<tm_wire_hello>(reading.request.body).job_name, "a_b__");
}

TEST(ReadRequest, AcceptsAnEmptyLastAdopt) {
  auto adopt = Blank<tm_wire_chunks>(TM_WIRE_ADOPT);
  adopt.last = 1;
  EXPECT_EQ(Read(adopt).verdict, Verdict::kServe);
  adopt.last = 0;
  EXPECT_EQ(Read(adopt).verdict, Verdict::kRefuse);
}

TEST(OutcomeReply, CutsALongReasonAndEndsItWithZero) {
  const Reply reply = OutcomeReply(GoodLease().header, TM_WIRE_REFUSED, std::string(500, 'x'));
  tm_wire_leased leased;
  std::memcpy(&leased, reply.bytes.data(), sizeof(leased));
  EXPECT_EQ(leased.header.sequence, 7u);
  EXPECT_EQ(std::strlen(leased.reason), static_cast<size_t>(TM_WIRE_REASON_BYTES - 1));
}

}  // namespace
}  // namespace tidemark::daemon
