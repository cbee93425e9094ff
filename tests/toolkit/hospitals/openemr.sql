-- Tables of OpenEMR 7 that hold stays, patients and facilities, with the names, types and keys of
-- its sql/database.sql. It declares no foreign key. Defaults and plain indexes are left out.
CREATE TABLE facility (
  id int(11) NOT NULL, uuid binary(16), name varchar(255), phone varchar(30), fax varchar(30),
  street varchar(255), city varchar(255), state varchar(50), postal_code varchar(11),
  country_code varchar(30), federal_ein varchar(15), website varchar(255), email varchar(255),
  service_location tinyint(1), billing_location tinyint(1), accepts_assignment tinyint(1),
  pos_code tinyint(4), x12_sender_id varchar(25), attn varchar(65),
  domain_identifier varchar(60), facility_npi varchar(15), facility_taxonomy varchar(15),
  tax_id_type varchar(31), color varchar(7), primary_business_entity int(10),
  facility_code varchar(31), extra_validation tinyint(1), mail_street varchar(30),
  mail_street2 varchar(30), mail_city varchar(50), mail_state varchar(3), mail_zip varchar(10),
  oid varchar(255), iban varchar(50), info text, weno_id varchar(10), inactive tinyint(1),
  date_created datetime, last_updated datetime, organization_type varchar(50),
  UNIQUE (uuid), PRIMARY KEY (id));
CREATE TABLE facility_user_ids (
  id bigint(20) NOT NULL, uid bigint(20), facility_id bigint(20), uuid binary(16),
  field_id varchar(31), field_value text, date_created datetime, last_updated datetime,
  PRIMARY KEY (id));
CREATE TABLE form_encounter (
  id bigint(20) NOT NULL, uuid binary(16), `date` datetime, reason longtext, facility longtext,
  facility_id int(11), pid bigint(20), encounter bigint(20), onset_date datetime,
  sensitivity varchar(30), billing_note text, pc_catid int(11), last_level_billed int,
  last_level_closed int, last_stmt_date date, stmt_count int, provider_id int(11),
  supervisor_id int(11), invoice_refno varchar(31), referral_source varchar(31),
  billing_facility int(11), external_id varchar(20), pos_code tinyint(4),
  parent_encounter_id bigint(20), class_code varchar(10), `shift` varchar(31),
  voucher_number varchar(255), discharge_disposition varchar(100),
  encounter_type_code varchar(31), encounter_type_description text,
  referring_provider_id int(11), date_end datetime, in_collection tinyint(1),
  last_update timestamp NULL, ordering_provider_id int(11),
  PRIMARY KEY (id), UNIQUE (uuid));
CREATE TABLE form_dictation (
  id bigint(20) NOT NULL, `date` datetime, pid bigint(20), `user` varchar(255),
  groupname varchar(255), authorized tinyint(4), activity tinyint(4), dictation longtext,
  additional_notes longtext, PRIMARY KEY (id));
CREATE TABLE openemr_postcalendar_events (
  pc_eid int(11) NOT NULL, pc_catid int(11), pc_multiple int(10), pc_aid varchar(30),
  pc_pid varchar(11), pc_gid int(11), pc_title varchar(150), pc_time datetime, pc_hometext text,
  pc_comments int(11), pc_counter mediumint(8), pc_topic int(3), pc_informant varchar(20),
  `pc_eventDate` date, `pc_endDate` date, pc_duration bigint(20), pc_recurrtype int(1),
  pc_recurrspec text, pc_recurrfreq int(3), `pc_startTime` time, `pc_endTime` time,
  pc_alldayevent int(1), pc_location text, pc_conttel varchar(50), pc_contname varchar(50),
  pc_contemail varchar(255), pc_website varchar(255), pc_fee varchar(50),
  pc_eventstatus int(11), pc_sharing int(11), pc_language varchar(30), pc_apptstatus varchar(15),
  pc_prefcatid int(11), pc_facility int(11), pc_sendalertsms varchar(3),
  pc_sendalertemail varchar(3), pc_billing_location smallint(6), pc_room varchar(20),
  uuid binary(16), PRIMARY KEY (pc_eid), UNIQUE (uuid));
CREATE TABLE patient_access_onsite (
  id int NOT NULL, pid bigint(20), portal_username varchar(100), portal_pwd varchar(255),
  portal_pwd_status tinyint, portal_login_username varchar(100), portal_onetime varchar(255),
  date_created datetime, PRIMARY KEY (id), UNIQUE (pid));
CREATE TABLE patient_data (
  id bigint(20) NOT NULL, uuid binary(16), title varchar(255), language varchar(255),
  financial varchar(255), fname varchar(255), lname varchar(255), mname varchar(255), `DOB` date,
  street varchar(255), postal_code varchar(255), city varchar(255), state varchar(255),
  country_code varchar(255), drivers_license varchar(255), ss varchar(255), occupation longtext,
  phone_home varchar(255), phone_biz varchar(255), phone_contact varchar(255),
  phone_cell varchar(255), pharmacy_id int(11), status varchar(255),
  contact_relationship varchar(255), `date` datetime, sex varchar(255), referrer varchar(255),
  `referrerID` varchar(255), `providerID` int(11), `ref_providerID` int(11), email varchar(255),
  email_direct varchar(255), ethnoracial varchar(255), race varchar(255), ethnicity varchar(255),
  religion varchar(40), interpreter varchar(255), interpreter_needed text,
  migrantseasonal varchar(255), family_size varchar(255), monthly_income varchar(255),
  billing_note text, homeless varchar(255), financial_review datetime, pubpid varchar(255),
  pid bigint(20) NOT NULL, genericname1 varchar(255), genericval1 varchar(255),
  genericname2 varchar(255), genericval2 varchar(255), hipaa_mail varchar(3),
  hipaa_voice varchar(3), hipaa_notice varchar(3), hipaa_message varchar(20),
  hipaa_allowsms varchar(3), hipaa_allowemail varchar(3), squad varchar(32), fitness int(11),
  referral_source varchar(30), usertext1 varchar(255), usertext2 varchar(255),
  usertext3 varchar(255), usertext4 varchar(255), usertext5 varchar(255),
  usertext6 varchar(255), usertext7 varchar(255), usertext8 varchar(255),
  userlist1 varchar(255), userlist2 varchar(255), userlist3 varchar(255),
  userlist4 varchar(255), userlist5 varchar(255), userlist6 varchar(255),
  userlist7 varchar(255), pricelevel varchar(255), regdate datetime, contrastart date,
  completed_ad varchar(3), ad_reviewed datetime, advance_directive_user_authenticator bigint(20),
  vfc varchar(255), mothersname varchar(255), guardiansname text, allow_imm_reg_use varchar(255),
  allow_imm_info_share varchar(255), allow_health_info_ex varchar(255),
  allow_patient_portal varchar(31), deceased_date datetime, deceased_reason varchar(255),
  soap_import_status tinyint(4), cmsportal_login varchar(60), care_team_provider text,
  care_team_facility text, care_team_status text, county varchar(40), industry text,
  imm_reg_status text, imm_reg_stat_effdate text, publicity_code text, publ_code_eff_date text,
  protect_indicator text, prot_indi_effdate text, guardianrelationship text, guardiansex text,
  guardianaddress text, guardiancity text, guardianstate text, guardianpostalcode text,
  guardiancountry text, guardianphone text, guardianworkphone text, guardianemail text,
  sexual_orientation text, gender_identity text, birth_fname text, birth_lname text,
  birth_mname text, dupscore int, name_history tinytext, suffix tinytext, street_line_2 tinytext,
  patient_groups text, prevent_portal_apps text, provider_since_date tinytext,
  created_by bigint(20), updated_by bigint(20), preferred_name tinytext,
  nationality_country tinytext, last_updated datetime, tribal_affiliations text,
  sex_identified text, pronoun text, UNIQUE (pid), UNIQUE (uuid));
CREATE TABLE patient_history (
  id bigint(20) NOT NULL, uuid binary(16), `date` datetime, care_team_provider text,
  care_team_facility text, pid bigint(20), history_type_key varchar(36),
  previous_name_prefix text, previous_name_first text, previous_name_middle text,
  previous_name_last text, previous_name_suffix text, previous_name_enddate date,
  created_by bigint(20), PRIMARY KEY (id), UNIQUE (uuid));
CREATE TABLE patient_tracker (
  id bigint(20) NOT NULL, `date` datetime, apptdate date, appttime time, eid bigint(20),
  pid bigint(20), original_user varchar(255), encounter bigint(20), lastseq varchar(4),
  random_drug_test tinyint(1), drug_screen_completed tinyint(1), PRIMARY KEY (id));
CREATE TABLE payments (
  id bigint(20) NOT NULL, pid bigint(20), dtime datetime, encounter bigint(20),
  `user` varchar(255), method varchar(255), source varchar(255), amount1 decimal(12,2),
  amount2 decimal(12,2), posted1 decimal(12,2), posted2 decimal(12,2), PRIMARY KEY (id));
CREATE TABLE pharmacies (
  id int(11) NOT NULL, name varchar(255), transmit_method int(11), email varchar(255),
  ncpdp int(12), npi int(12), PRIMARY KEY (id));
CREATE TABLE phone_numbers (
  id int(11) NOT NULL, country_code varchar(5), area_code char(3), prefix char(3),
  number varchar(4), type int(11), foreign_id int(11), PRIMARY KEY (id));
CREATE TABLE pnotes (
  id bigint(20) NOT NULL, `date` datetime, body longtext, pid bigint(20), `user` varchar(255),
  groupname varchar(255), activity tinyint(4), authorized tinyint(4), title varchar(255),
  assigned_to varchar(255), deleted tinyint(4), message_status varchar(20),
  portal_relation varchar(100), is_msg_encrypted tinyint(2), update_by bigint(20),
  update_date datetime, PRIMARY KEY (id));
